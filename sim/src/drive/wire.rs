//! One connection of a node: bytes in, bytes out, and the message faults between the network and
//! the server.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Break, Ends, Fate, Platform, node::Driver, outgoing::Outgoing};
use crate::{
    event::{ConnId, Event},
    resp::{Decoder, Limits},
};

/// Bytes read at once, as Redis does (`PROTO_IOBUF_LEN`).
pub(super) const READ: usize = 16 << 10;

/// Carries a connection until either side closes it. `client` is the peer's address; the server
/// dialed if there is none.
pub(super) async fn carry<P: Platform>(
    driver: Rc<Driver<P>>,
    conn: ConnId,
    outgoing: Rc<RefCell<Outgoing>>,
    stream: P::Stream,
    client: Option<IpAddr>,
) {
    let peer = client.or_else(|| driver.platform.ends(&stream).ok().map(|ends| ends.host));
    // What nodes of a cluster tell each other is no commands.
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

/// Cuts what a client sends into commands, so that faults can pick one.
#[derive(Default)]
struct Tap {
    raw: BytesMut,
    decoder: Decoder,
}

struct Wire<P: Platform> {
    driver: Rc<Driver<P>>,
    conn: ConnId,
    outgoing: Rc<RefCell<Outgoing>>,
    peer: IpAddr,
    stream: P::Stream,
    /// `None` without an observer, or after a protocol error.
    tap: Option<Tap>,
    /// A command that comes later than it was sent, and what becomes of it then.
    held: Option<(Delay, Bytes, Fate)>,
    /// Replies leave no sooner than this.
    sending: Option<Delay>,
    /// The observer has been shown the piece being written.
    shown: bool,
}

/// What to do with the connection next.
enum Next {
    /// There may be more to do at once.
    Again,
    /// Others have their turn first.
    Later,
    /// Whatever it waits for will wake it.
    Wait,
    /// It is over.
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

    /// Writes what the server has sent; `Wait` if there is nothing more to write now.
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

    /// Notifies the server of the number of unsent bytes, if it has changed.
    fn tell_unsent(&mut self) {
        let unsent = self.outgoing.borrow_mut().unsent_news();
        self.driver.tell_unsent(self.conn, unsent);
    }

    /// Reads what the peer has sent, one command or one piece at a time.
    fn read(&mut self, cx: &mut Context<'_>) -> Next {
        // What comes to a node that does nothing has time.
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
            // Input after the end of a connection is drained. If it were left unread, the network
            // would answer it with a reset, and drop replies that are on their way.
            Poll::Ready(Ok(())) if closing => Next::Again,
            Poll::Ready(Ok(())) => match &mut self.tap {
                None => {
                    let bytes = Bytes::copy_from_slice(buffer.filled());
                    self.give(bytes)
                }
                Some(tap) => {
                    tap.raw.extend_from_slice(buffer.filled());
                    tap.decoder.feed(buffer.filled());
                    Next::Again
                }
            },
        }
    }

    /// Takes the next whole command out of the tap, if there is one, and does what the faults say.
    fn next_command(&mut self) -> Option<Next> {
        let tap = self.tap.as_mut()?;
        let arguments = match tap.decoder.next(&Limits::default()) {
            Ok(arguments) => arguments?,
            Err(_) => {
                // The server says what is wrong with them.
                let rest = std::mem::take(&mut tap.raw).freeze();
                self.tap = None;
                return Some(self.give(rest));
            }
        };
        let length = tap.raw.len() - tap.decoder.unread();
        let raw = tap.raw.split_to(length).freeze();
        let platform = &self.driver.platform;
        let fate = platform.request(self.peer, self.conn, &raw, &arguments);
        if fate.request_delay.is_zero() {
            return Some(self.arrive(raw, fate));
        }
        self.held = Some((Box::pin(platform.wait(fate.request_delay)), raw, fate));
        Some(Next::Again)
    }

    /// A command has come to the node, with what is still to become of it.
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
                // An earlier reply that is late still goes first.
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
        // What this brings to send is written right after it, in this poll: no need to be woken for
        // it.
        self.outgoing.borrow_mut().waker = None;
        self.driver.step(Event::Bytes { conn: self.conn, bytes });
        // The tasks of closed connections have been woken, and run before this one gets its reply.
        if self.driver.has_hung_up() { Next::Later } else { Next::Again }
    }

    fn hang_up(&mut self) -> Next {
        self.driver.hung_up(self.conn);
        Next::End
    }
}
