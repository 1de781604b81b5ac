//! One connection of a node: reads and writes its bytes, and applies the message faults between the
//! network and the server.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use lockstorm_world::{Break, Fate};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Ends, Platform, node::Driver, outgoing::Outgoing, tap::Tap};
use crate::event::{ConnId, Event};

/// Number of bytes that one read takes at most, as in Redis (`PROTO_IOBUF_LEN`).
pub(super) const READ: usize = 16 << 10;

/// Carries a connection until either side closes it. `client` is the peer's address; `None` if the
/// server dialed.
pub(super) async fn carry<P: Platform>(
    driver: Rc<Driver<P>>,
    conn: ConnId,
    outgoing: Rc<RefCell<Outgoing>>,
    stream: P::Stream,
    client: Option<IpAddr>,
) {
    let peer = client.or_else(|| driver.platform.ends(&stream).ok().map(|ends| ends.host));
    // Messages between nodes of a cluster are not commands.
    let tap = (P::WATCHED && client.is_some() && !conn.is_bus()).then(Tap::default);
    let mut wire = Wire {
        driver,
        conn,
        outgoing,
        peer: peer.unwrap_or(Ends::NOBODY),
        stream,
        tap,
        held: None,
        sending: None,
        shown: false,
    };
    poll_fn(|cx| wire.poll(cx)).await;
}

type Delay = Pin<Box<dyn Future<Output = ()>>>;

struct Wire<P: Platform> {
    driver: Rc<Driver<P>>,
    conn: ConnId,
    outgoing: Rc<RefCell<Outgoing>>,
    peer: IpAddr,
    stream: P::Stream,
    /// `None` without an observer, or after a protocol error.
    tap: Option<Tap>,
    /// A delayed command with its fate.
    held: Option<(Delay, Bytes, Fate)>,
    /// Replies leave only after this delay.
    sending: Option<Delay>,
    /// True once the observer has received the piece that is being written.
    shown: bool,
}

/// The next thing to do with the connection.
enum Next {
    /// Go on at once: there may be more to do.
    Again,
    /// Let other tasks run first.
    Later,
    /// Wait to be woken.
    Wait,
    /// Stop: the connection has ended.
    End,
}

impl<P: Platform> Wire<P> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let next = match self.write(cx) {
                Next::Wait => self.read(cx),
                next => next,
            };
            match next {
                Next::Again => {}
                Next::Later => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::Wait => return Poll::Pending,
                Next::End => return Poll::Ready(()),
            }
        }
    }

    /// Writes the output of the server; returns `Wait` if there is nothing more to write now.
    fn write(&mut self, cx: &mut Context<'_>) -> Next {
        if let Some(delay) = &mut self.sending {
            if delay.as_mut().poll(cx).is_pending() {
                self.outgoing.borrow_mut().waker = Some(cx.waker().clone());
                return Next::Wait;
            }
            self.sending = None;
        }
        loop {
            let (front, closing) = {
                let mut outgoing = self.outgoing.borrow_mut();
                if outgoing.overrun {
                    drop(outgoing);
                    return self.hang_up();
                }
                outgoing.waker = Some(cx.waker().clone());
                (outgoing.front(), outgoing.closing)
            };
            if let Some(piece) = front {
                if !self.shown {
                    if !self.conn.is_bus() {
                        self.driver.platform.reply(self.peer, self.conn, &piece);
                    }
                    self.shown = true;
                }
                match Pin::new(&mut self.stream).poll_write(cx, &piece) {
                    Poll::Pending => {
                        if self.outgoing.borrow().killed {
                            return self.hang_up();
                        }
                        self.tell_unsent();
                        return if self.outgoing.borrow().killed { Next::Again } else { Next::Wait };
                    }
                    Poll::Ready(Err(_) | Ok(0)) => return self.hang_up(),
                    Poll::Ready(Ok(count)) => {
                        self.outgoing.borrow_mut().written(count);
                        self.shown = count < piece.len();
                    }
                }
                continue;
            }
            self.tell_unsent();
            if !closing {
                return Next::Wait;
            }
            if Pin::new(&mut self.stream).poll_shutdown(cx).is_pending() {
                return Next::Wait;
            }
            return self.hang_up();
        }
    }

    /// Reports the number of unsent bytes to the server, if it has changed.
    fn tell_unsent(&mut self) {
        let unsent = self.outgoing.borrow_mut().unsent_news();
        self.driver.tell_unsent(self.conn, unsent);
    }

    /// Reads the bytes of the peer, one command or one piece at a time.
    fn read(&mut self, cx: &mut Context<'_>) -> Next {
        // Leave the bytes for a stalled node in the socket.
        if self.driver.is_stalled(cx) {
            return Next::Wait;
        }
        let closing = self.outgoing.borrow().closing;
        if !closing {
            if let Some((delay, ..)) = &mut self.held {
                if delay.as_mut().poll(cx).is_pending() {
                    return Next::Wait;
                }
                let (_, raw, fate) = self.held.take().expect("just polled");
                return self.arrive(raw, fate);
            }
            if let Some(next) = self.next_command() {
                return next;
            }
        }
        let driver = self.driver.clone();
        let mut buffer = driver.buffer.borrow_mut();
        let mut buffer = ReadBuf::new(&mut buffer);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => Next::Wait,
            Poll::Ready(Err(_)) => self.hang_up(),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => self.hang_up(),
            // Drain input after the end of a connection. If it were left unread, the network would
            // answer it with a reset, and drop replies that are on their way.
            Poll::Ready(Ok(())) if closing => Next::Again,
            Poll::Ready(Ok(())) => match &mut self.tap {
                None => {
                    let bytes = Bytes::copy_from_slice(buffer.filled());
                    self.give(bytes)
                }
                Some(tap) => {
                    tap.feed(buffer.filled());
                    Next::Again
                }
            },
        }
    }

    /// Takes the next whole command out of the tap, if there is one, and applies its fate.
    fn next_command(&mut self) -> Option<Next> {
        let tap = self.tap.as_mut()?;
        let (raw, arguments) = match tap.next() {
            Ok(command) => command?,
            Err(rest) => {
                // The server reports the protocol error.
                self.tap = None;
                return Some(self.give(rest));
            }
        };
        let platform = &self.driver.platform;
        let fate = platform.request(self.peer, self.conn, &raw, &arguments);
        if fate.request_delay.is_zero() {
            return Some(self.arrive(raw, fate));
        }
        self.held = Some((Box::pin(platform.wait(fate.request_delay)), raw, fate));
        Some(Next::Again)
    }

    /// Passes a command to the server, and applies the rest of its fate.
    fn arrive(&mut self, raw: Bytes, fate: Fate) -> Next {
        match fate.breaks {
            Some(Break::BeforeRequest) => return self.hang_up(),
            Some(Break::BeforeReply) => {
                self.outgoing.borrow_mut().mute = true;
                self.driver.step(Event::Bytes { conn: self.conn, bytes: raw });
                return self.hang_up();
            }
            Some(Break::LoseReply) => self.outgoing.borrow_mut().mute = true,
            None if fate.reply_delay.is_zero() => {}
            None => {
                let (earlier, wait) = (self.sending.take(), self.driver.platform.wait(fate.reply_delay));
                // An earlier delayed reply still goes first.
                self.sending = Some(Box::pin(async move {
                    if let Some(earlier) = earlier {
                        earlier.await;
                    }
                    wait.await;
                }));
            }
        }
        self.give(raw)
    }

    fn give(&mut self, bytes: Bytes) -> Next {
        // The output of this step is written right after it, in this poll: it must not wake this
        // task.
        self.outgoing.borrow_mut().waker = None;
        self.driver.step(Event::Bytes { conn: self.conn, bytes });
        // The tasks of closed connections have been woken; let them run before this one writes its
        // reply.
        if self.driver.has_hung_up() { Next::Later } else { Next::Again }
    }

    fn hang_up(&mut self) -> Next {
        self.driver.hung_up(self.conn);
        Next::End
    }
}
