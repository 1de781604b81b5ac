//! A connection between two hosts of a world in real time, carried by the links of the world.
//!
//! The dialing end is in memory; the other end is a real socket that [`proxy`](crate::proxy) opens
//! to the listener. Data between the two crosses the links of the world in [payloads](Carried). So
//! latencies, cuts, delays and losses of links also apply to real servers, which notice them only
//! by what arrives and what does not.

use std::{
    collections::VecDeque,
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

use crate::{lock::lock, loop_waker::LoopWaker, trace::HostName};

/// A part of a connection that crosses a link.
#[derive(Debug)]
pub(crate) enum Carried {
    /// The dialing end asks for a connection.
    Connect,
    /// The connection is made, with these addresses of the proxy's socket and of the listener.
    Connected(SocketAddr, SocketAddr),
    /// The connection is refused.
    Refused(io::ErrorKind),
    /// Written bytes.
    Bytes(Bytes),
    /// One side has stopped writing.
    End,
    /// The connection is broken.
    Reset,
}

/// One of the two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The dialing end.
    Near,
    /// The end with the listener.
    Far,
}

/// The payloads that connections have sent, until the world's loop puts them onto links.
#[derive(Debug)]
pub(crate) struct Sent {
    queue: Mutex<VecDeque<(Arc<Conn>, Side, Carried)>>,
    loop_waker: Arc<LoopWaker>,
}

impl Sent {
    /// Returns an empty queue that wakes the loop of `loop_waker`.
    pub(crate) fn new(loop_waker: Arc<LoopWaker>) -> Sent {
        Sent { queue: Mutex::default(), loop_waker }
    }

    /// Takes all payloads, each with its connection and the side it goes to.
    pub(crate) fn take(&self) -> VecDeque<(Arc<Conn>, Side, Carried)> {
        std::mem::take(&mut lock(&self.queue))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.queue).is_empty()
    }
}

/// The maximum number of bytes of one direction in flight or unread. Beyond it the writer waits, as
/// for a TCP window.
const WINDOW: usize = 1 << 20;

/// The state of the dialing end.
#[derive(Debug, Default)]
struct Near {
    /// The addresses of the proxy's socket and of the listener, once the connection is made.
    ends: Option<(SocketAddr, SocketAddr)>,
    incoming: VecDeque<Bytes>,
    /// Set when no more bytes come: the other side has stopped writing, or an error broke the
    /// connection.
    over: Option<Result<(), io::ErrorKind>>,
    /// Bytes that the far end has not yet written to its socket.
    underway: usize,
    /// Bytes from the far end that are not yet read.
    unread: usize,
    /// Set once this end has stopped writing.
    ended: bool,
    /// Set once this end was dropped, reset or crashed.
    gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Near {
    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }
}

/// A connection from one host to another.
pub(crate) struct Conn {
    sent: Arc<Sent>,
    /// The indices of the two hosts.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The dialing host.
    pub(crate) client: HostName,
    /// The host with the listener, and its port.
    pub(crate) host: HostName,
    pub(crate) port: u16,
    near: Mutex<Near>,
    far: UnboundedSender<Carried>,
    /// The payloads that have arrived at the far end, until its task takes them over.
    arrived: Mutex<Option<UnboundedReceiver<Carried>>>,
    /// Set when the far end has vanished without notice, because its host has lost its power.
    pub(crate) is_lost: AtomicBool,
    /// Notified when the dialing end has read, so that more may be sent back.
    pub(crate) has_read: Notify,
}

impl Conn {
    /// Returns a connection that is yet to be opened, from a host to a port of another; each host
    /// with its index.
    pub(crate) fn new(
        sent: Arc<Sent>,
        (from, client): (usize, HostName),
        (to, host): (usize, HostName),
        port: u16,
    ) -> Arc<Conn> {
        let (far, arrived) = unbounded_channel();
        Arc::new(Conn {
            sent,
            from,
            to,
            client,
            host,
            port,
            near: Mutex::default(),
            far,
            arrived: Mutex::new(Some(arrived)),
            is_lost: AtomicBool::new(false),
            has_read: Notify::new(),
        })
    }

    /// Puts a payload onto the link towards a side.
    pub(crate) fn send(self: &Arc<Self>, to: Side, carried: Carried) {
        lock(&self.sent.queue).push_back((self.clone(), to, carried));
        self.sent.loop_waker.wake();
    }

    /// Delivers a payload at the far end. Returns the receiver for the far end's task if the
    /// payload starts it.
    pub(crate) fn arrive_far(self: &Arc<Self>, carried: Carried) -> Option<UnboundedReceiver<Carried>> {
        if let Carried::Connect = carried {
            // No kernel repeats an abandoned connection attempt.
            return if lock(&self.near).gone { None } else { lock(&self.arrived).take() };
        }
        if (self.is_lost.load(Ordering::Relaxed) || self.far.send(carried).is_err()) && !lock(&self.near).gone
        {
            self.send(Side::Near, Carried::Reset);
        }
        None
    }

    /// Delivers a payload at the dialing end.
    pub(crate) fn arrive_near(self: &Arc<Self>, carried: Carried) {
        let mut near = lock(&self.near);
        if near.gone {
            drop(near);
            if !matches!(carried, Carried::End | Carried::Reset | Carried::Refused(_)) {
                self.send(Side::Far, Carried::Reset);
            }
            return;
        }
        match carried {
            Carried::Connected(local, peer) => near.ends = Some((local, peer)),
            Carried::Refused(kind) => near.over = Some(Err(kind)),
            Carried::Bytes(bytes) if near.over.is_none() => near.incoming.push_back(bytes),
            Carried::End => near.over = near.over.or(Some(Ok(()))),
            Carried::Reset => near.break_off(),
            Carried::Connect | Carried::Bytes(_) => {}
        }
        near.wake();
    }

    /// Aborts one end, like the kernel of a host that resets it or has lost its power.
    pub(crate) fn abort(&self, side: Side) {
        match side {
            Side::Near => {
                let mut near = lock(&self.near);
                near.gone = true;
                near.break_off();
                near.wake();
            }
            Side::Far => {
                self.is_lost.store(true, Ordering::Relaxed);
                // A far end whose task has ended needs no reset.
                let _ = self.far.send(Carried::Reset);
            }
        }
    }

    /// Records that the far end has written `count` bytes to its socket.
    pub(crate) fn written(&self, count: usize) {
        let mut near = lock(&self.near);
        near.underway = near.underway.saturating_sub(count);
        if let Some(writer) = near.writer.take() {
            writer.wake();
        }
    }

    /// Sends bytes that the far end has read back to the dialing end.
    pub(crate) fn send_back(self: &Arc<Self>, bytes: Bytes) {
        lock(&self.near).unread += bytes.len();
        self.send(Side::Near, Carried::Bytes(bytes));
    }

    /// Returns true if more may be sent back; otherwise the far end must wait until the dialing end
    /// has read.
    pub(crate) fn has_room_back(&self) -> bool {
        let near = lock(&self.near);
        near.gone || near.unread < WINDOW
    }
}

impl Near {
    /// Breaks the connection: unread bytes are lost.
    fn break_off(&mut self) {
        self.incoming.clear();
        self.over = Some(Err(io::ErrorKind::ConnectionReset));
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conn({} -> {}:{})", self.client, self.host, self.port)
    }
}

/// The dialing end of a connection.
#[derive(Debug)]
pub(crate) struct Dialed(Arc<Conn>);

impl Dialed {
    /// Opens a connection over the links of the world.
    pub(crate) async fn open(conn: Arc<Conn>) -> io::Result<Dialed> {
        let dialed = Dialed(conn);
        dialed.0.send(Side::Far, Carried::Connect);
        std::future::poll_fn(|cx| {
            let mut near = lock(&dialed.0.near);
            match near.over {
                Some(Err(kind)) => Poll::Ready(Err(io::Error::from(kind))),
                _ if near.ends.is_some() => Poll::Ready(Ok(())),
                _ => {
                    near.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await?;
        Ok(dialed)
    }

    fn ends(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        lock(&self.0.near).ends.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the address of the proxy's socket, by which the server knows this end.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.ends().map(|(local, _)| local)
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.ends().map(|(_, peer)| peer)
    }

    fn end(&self, gone: bool) {
        let mut near = lock(&self.0.near);
        let (was_gone, had_ended) = (near.gone, near.ended);
        (near.gone, near.ended) = (was_gone || gone, true);
        drop(near);
        if !was_gone && !had_ended {
            self.0.send(Side::Far, Carried::End);
        }
        self.0.has_read.notify_one();
    }
}

impl Drop for Dialed {
    fn drop(&mut self) {
        self.end(true);
    }
}

impl AsyncRead for Dialed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut near = lock(&self.0.near);
        let mut count = 0;
        while buf.remaining() > 0
            && let Some(first) = near.incoming.front_mut()
        {
            let part = first.len().min(buf.remaining());
            buf.put_slice(&first[..part]);
            first.advance(part);
            count += part;
            if first.is_empty() {
                near.incoming.pop_front();
            }
        }
        if count > 0 {
            near.unread = near.unread.saturating_sub(count);
            self.0.has_read.notify_one();
            return Poll::Ready(Ok(()));
        }
        match near.over {
            Some(over) => Poll::Ready(over.map_err(io::Error::from)),
            None => {
                near.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut near = lock(&self.0.near);
        if let Some(Err(kind)) = near.over {
            return Poll::Ready(Err(kind.into()));
        }
        if near.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = buf.len().min(WINDOW.saturating_sub(near.underway));
        if count == 0 && !buf.is_empty() {
            near.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        near.underway += count;
        drop(near);
        self.0.send(Side::Far, Carried::Bytes(Bytes::copy_from_slice(&buf[..count])));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end(false);
        Poll::Ready(Ok(()))
    }
}
