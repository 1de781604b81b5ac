//! A server behind sockets. The loop is written once, over what a [`Platform`] offers; three thin
//! platforms carry it: the real network and a host of a user's own `turmoil::Sim` are here, a host
//! of the world is in [`world::node`](crate::world::node).

mod clock;
mod fate;
mod node;
mod outgoing;
mod ports;
mod test_server;
mod wire;

pub mod tokio;
#[cfg(feature = "turmoil")]
pub mod turmoil;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use ::tokio::io::{AsyncRead, AsyncWrite};
use bytes::Bytes;

pub use clock::ManualClock;
pub use fate::{Break, Fate};
pub use node::{DrivenNode, serve};
pub use ports::bind;
pub use test_server::{TestServer, TestServerBuilder};

use crate::{
    env::Observation,
    event::{ConnId, Signal},
    log::Line,
    time::{Monotonic, Wall},
};

/// The two ends of a connection.
#[derive(Debug, Clone)]
pub struct Ends {
    /// The address of the host at the other end; unspecified for a Unix socket.
    pub host: IpAddr,
    /// The other end, as CLIENT LIST shows it.
    pub peer: String,
    /// This end, as CLIENT LIST shows it.
    pub local: String,
}

impl Ends {
    /// The address of a peer that has none.
    pub(crate) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    /// The ends of a TCP connection.
    pub fn tcp(peer: SocketAddr, local: SocketAddr) -> Ends {
        Ends { host: peer.ip(), peer: peer.to_string(), local: local.to_string() }
    }
}

/// The sockets and clocks of the place a server runs in.
///
/// [`serve`] must be polled within a [`tokio::task::LocalSet`](::tokio::task::LocalSet).
pub trait Platform: 'static {
    /// Listens.
    type Listener: 'static;
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;

    /// The wall clock.
    fn wall(&self) -> Wall;

    /// The monotonic clock.
    fn monotonic(&self) -> Monotonic;

    /// Resolves when the monotonic clock shows `at`.
    fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static;

    /// Resolves after a delay on the wire, which the clocks of the host do not affect.
    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static;

    /// The next connection.
    fn accept(&self, listener: &Self::Listener) -> impl Future<Output = io::Result<Self::Stream>>;

    /// A new connection to another node.
    fn dial(
        &self,
        host: &str,
        port: u16,
        from: Option<IpAddr>,
    ) -> impl Future<Output = io::Result<Self::Stream>>;

    /// The ends of a connection.
    ///
    /// # Errors
    /// If it is not connected any more.
    fn ends(&self, stream: &Self::Stream) -> io::Result<Ends>;

    /// The clock, if it only moves when a client says so. [`Self::wall`], [`Self::monotonic`] and
    /// [`Self::sleep_until`] go by it then.
    fn manual_clock(&self) -> Option<&ManualClock> {
        None
    }

    /// The next signal that asks the process to end.
    fn signal(&self) -> impl Future<Output = Signal> {
        std::future::pending()
    }

    /// Whether the log is read.
    fn logs(&self) -> bool {
        false
    }

    /// A line for the log.
    fn log(&self, _line: &Line) {}

    /// Whether there is an observer: [`Self::request`] gets commands, [`Self::reply`] replies,
    /// [`Self::observed`] observations.
    const WATCHED: bool = false;

    /// A whole command arrived, here as its bytes and as its arguments; the answer is what becomes
    /// of it.
    fn request(&self, _peer: IpAddr, _conn: ConnId, _raw: &Bytes, _arguments: &[Bytes]) -> Fate {
        Fate::default()
    }

    /// Bytes are about to be written.
    fn reply(&self, _peer: IpAddr, _conn: ConnId, _bytes: &Bytes) {}

    /// The server saw or did something.
    fn observed(&self, _observation: &Observation) {}
}
