//! One end of a connection.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddrV4,
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use tokio::io::ReadBuf;

use crate::packet::{BYTES_MAX, BYTES_MAX_WITHIN, Kind, Packet};

/// The most bytes that wait in an end to be sent or acknowledged.
const SEND_MAX: usize = 64 << 10;

/// The most bytes that wait in an end to be read. It is large, because only a single read of half
/// of it reopens a closed window.
const RECEIVE_MAX: usize = 256 << 20;

/// The state of an end, as TCP names it. Ends do not linger in `TimeWait`: no packet is late on a
/// link that keeps order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    LastAck,
    Closing,
    Closed,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) local: SocketAddrV4,
    pub(super) remote: SocketAddrV4,
    pub(super) state: State,
    /// The number of the next byte to send.
    next: u32,
    /// The number of the first byte that the other end has not acknowledged.
    unacknowledged: u32,
    /// The number of bytes that the other end has room for, counted from there.
    window: u16,
    /// The number of the next byte to receive.
    expected: u32,
    /// The number of our end of the stream, once no more may be written.
    end: Option<u32>,
    /// Written, and not yet sent.
    unsent: Vec<u8>,
    /// Received, and not yet read.
    received: VecDeque<Bytes>,
    unread: usize,
    /// Set when the other end has ended its direction.
    ended: bool,
    /// Set when the connection was reset.
    was_reset: bool,
    /// Set when no code owns this end any more, and only the kernel still closes it.
    pub(super) dropped: bool,
    readers: Vec<Waker>,
    writers: Vec<Waker>,
    pub(super) connecting: Option<Waker>,
}

impl Connection {
    /// Returns an end that has sent a packet with the number `sequence`, its first.
    pub(super) fn new(local: SocketAddrV4, remote: SocketAddrV4, state: State, sequence: u32) -> Connection {
        let next = sequence.wrapping_add(1);
        Connection {
            local,
            remote,
            state,
            next,
            unacknowledged: next,
            window: u16::MAX,
            expected: 0,
            end: None,
            unsent: Vec::new(),
            received: VecDeque::new(),
            unread: 0,
            ended: false,
            was_reset: false,
            dropped: false,
            readers: Vec::new(),
            writers: Vec::new(),
            connecting: None,
        }
    }

    /// Returns the answer to the request for a connection that this end has accepted.
    pub(super) fn accept(&mut self, request: &Packet) -> Packet {
        self.window = request.window;
        self.expected = request.sequence.wrapping_add(1);
        let mut answer = self.packet(Kind::SynAck, Bytes::new());
        answer.sequence = answer.sequence.wrapping_sub(1);
        answer
    }

    /// Returns a packet of this end, with the present numbers.
    pub(super) fn packet(&self, kind: Kind, payload: Bytes) -> Packet {
        let (from, to) = (self.local, self.remote);
        let window = RECEIVE_MAX.saturating_sub(self.unread).min(usize::from(u16::MAX)) as u16;
        Packet { from, to, kind, sequence: self.next, ack: self.expected, window, payload }
    }

    /// Returns true if no more can happen to it, and it may be forgotten.
    pub(super) fn is_over(&self) -> bool {
        self.dropped && self.state == State::Closed
    }

    /// Takes in a packet; returns an acknowledgement if one is due. Packets that are out of order
    /// are dropped.
    pub(super) fn receive(&mut self, packet: Packet, woken: &mut VecDeque<Waker>) -> Option<Packet> {
        if packet.kind != Kind::Syn {
            self.acknowledged(packet.ack, packet.window);
            woken.extend(self.writers.drain(..));
        }
        let (mut reads, mut due) = (false, false);
        let length = packet.payload.len();
        if length > 0 && packet.sequence == self.expected && !self.ended {
            let room = length.min(RECEIVE_MAX.saturating_sub(self.unread));
            if room > 0 {
                self.received.push_back(packet.payload.slice(..room));
                self.unread += room;
                self.expected = self.expected.wrapping_add(room as u32);
                (reads, due) = (true, true);
            }
        }
        if packet.kind == Kind::Fin
            && !self.ended
            && packet.sequence.wrapping_add(length as u32) == self.expected
        {
            self.ended = true;
            self.expected = self.expected.wrapping_add(1);
            (reads, due) = (true, true);
            self.state = match self.state {
                State::Established => State::CloseWait,
                State::FinWait1 => State::Closing,
                State::FinWait2 => State::Closed,
                other => other,
            };
        }
        if reads {
            woken.extend(self.readers.drain(..));
        }
        due.then(|| self.packet(Kind::Data, Bytes::new()))
    }

    fn acknowledged(&mut self, ack: u32, window: u16) {
        let acknowledged = ack.wrapping_sub(self.unacknowledged);
        if acknowledged > 0 && acknowledged <= self.underway() {
            self.unacknowledged = ack;
            if self.end.is_some_and(|end| ack == end.wrapping_add(1)) {
                self.state = match self.state {
                    State::FinWait1 => State::FinWait2,
                    State::Closing | State::LastAck => State::Closed,
                    other => other,
                };
            }
        }
        self.window = window;
    }

    /// Returns the answer to the acceptance of a connection that this end has asked for.
    pub(super) fn established(&mut self, acceptance: &Packet, woken: &mut VecDeque<Waker>) -> Packet {
        self.state = State::Established;
        self.expected = acceptance.sequence.wrapping_add(1);
        self.window = acceptance.window;
        woken.extend(self.connecting.take());
        self.packet(Kind::Data, Bytes::new())
    }

    /// Establishes an accepted connection; returns false if the packet does not acknowledge the
    /// acceptance.
    pub(super) fn confirmed(&mut self, packet: &Packet) -> bool {
        let confirmed = packet.ack == self.next;
        if confirmed {
            (self.state, self.window) = (State::Established, packet.window);
        }
        confirmed
    }

    /// Ends both directions, after a reset.
    pub(super) fn abort(&mut self, woken: &mut VecDeque<Waker>) {
        (self.state, self.was_reset) = (State::Closed, true);
        self.unsent.clear();
        self.received.clear();
        self.unread = 0;
        woken.extend(self.connecting.take());
        woken.extend(self.readers.drain(..));
        woken.extend(self.writers.drain(..));
    }

    /// Returns the number of bytes that were sent and are not acknowledged.
    fn underway(&self) -> u32 {
        self.next.wrapping_sub(self.unacknowledged)
    }

    /// Returns true if bytes or the end of the stream wait to be sent.
    pub(super) fn has_more(&self) -> bool {
        !self.unsent.is_empty() || self.end == Some(self.next)
    }

    /// Returns the next packet that may be sent.
    pub(super) fn send(&mut self) -> Option<Packet> {
        use State::{CloseWait, Closing, Established, FinWait1, LastAck};
        if !matches!(self.state, Established | CloseWait | FinWait1 | Closing | LastAck) {
            return None;
        }
        let room = usize::from(self.window).saturating_sub(self.underway() as usize);
        if room == 0 {
            return None;
        }
        if self.unsent.is_empty() {
            if self.end != Some(self.next) {
                return None;
            }
            let packet = self.packet(Kind::Fin, Bytes::new());
            self.next = self.next.wrapping_add(1);
            return Some(packet);
        }
        let most = if self.local.ip().is_loopback() { BYTES_MAX_WITHIN } else { BYTES_MAX };
        let length = self.unsent.len().min(most).min(room);
        let payload = if length == self.unsent.len() {
            Bytes::from(std::mem::take(&mut self.unsent))
        } else {
            self.unsent.drain(..length).collect()
        };
        let packet = self.packet(Kind::Data, payload);
        self.next = self.next.wrapping_add(length as u32);
        Some(packet)
    }

    fn check_reset(&self) -> io::Result<()> {
        if self.was_reset { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }

    pub(super) fn poll_connected(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        match self.state {
            State::Established => Poll::Ready(Ok(())),
            State::SynSent | State::SynReceived => {
                self.connecting = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Err(io::ErrorKind::ConnectionRefused.into())),
        }
    }

    pub(super) fn poll_write(&mut self, cx: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_reset()?;
        if self.end.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !matches!(self.state, State::Established | State::CloseWait) {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let room = SEND_MAX.saturating_sub(self.underway() as usize + self.unsent.len());
        if room == 0 {
            register(&mut self.writers, cx);
            return Poll::Pending;
        }
        let length = bytes.len().min(room);
        if self.unsent.is_empty() {
            // Of just the right size, so that the packet takes it as it is.
            self.unsent = bytes[..length].to_vec();
        } else {
            self.unsent.extend_from_slice(&bytes[..length]);
        }
        Poll::Ready(Ok(length))
    }

    /// Ends our direction once all that was written is sent.
    pub(super) fn shut_down(&mut self) -> io::Result<()> {
        self.check_reset()?;
        if self.end.is_none() {
            self.end = Some(self.next.wrapping_add(self.unsent.len() as u32));
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
        Ok(())
    }

    /// Reads; returns an acknowledgement if there is so much more room now that the other end must
    /// know.
    pub(super) fn poll_read(
        &mut self,
        cx: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Option<Packet>>> {
        use State::{CloseWait, Established, FinWait1, FinWait2};
        self.check_reset()?;
        if self.unread == 0 {
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            if !matches!(self.state, Established | FinWait1 | FinWait2 | CloseWait) {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            }
            register(&mut self.readers, cx);
            return Poll::Pending;
        }
        let length = self.unread.min(buf.remaining());
        let mut left = length;
        while left > 0 {
            let Some(first) = self.received.front_mut() else { break };
            let part = first.len().min(left);
            buf.put_slice(&first[..part]);
            if part == first.len() {
                self.received.pop_front();
            } else {
                first.advance(part);
            }
            left -= part;
        }
        self.unread -= length;
        let reopens = length >= RECEIVE_MAX / 2;
        Poll::Ready(Ok(reopens.then(|| self.packet(Kind::Data, Bytes::new()))))
    }

    /// Returns true if bytes have not been read.
    pub(super) fn is_unread(&self) -> bool {
        self.unread > 0
    }
}

/// Registers a waker, unless it is registered.
pub(super) fn register(wakers: &mut Vec<Waker>, cx: &Context<'_>) {
    if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
        wakers.push(cx.waker().clone());
    }
}
