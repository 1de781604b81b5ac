//! Runs a server behind sockets. The loop is written once, for any [`Platform`]. There are three
//! thin platforms: the real network, a host of a user's own `turmoil::Sim`, and a host of the
//! [`world`].

mod clock;
mod node;
mod outgoing;
mod ports;
mod tap;
mod test_server;
mod wire;

pub mod tokio;
#[cfg(feature = "turmoil")]
pub mod turmoil;
pub mod world;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use ::tokio::io::{AsyncRead, AsyncWrite};
use bytes::Bytes;
use lockstorm_world::Fate;

pub use clock::ManualClock;
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
    /// The address of a peer without an address.
    pub(crate) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    /// Returns the ends of a TCP connection, with addresses such as `127.0.0.1:51000`.
    pub fn tcp(peer: SocketAddr, local: SocketAddr) -> Ends {
        Ends { host: peer.ip(), peer: peer.to_string(), local: local.to_string() }
    }
}

/// The sockets and clocks on which a server runs.
///
/// [`serve`] must be polled within a [`tokio::task::LocalSet`](::tokio::task::LocalSet).
pub trait Platform: 'static {
    /// A listener.
    type Listener: 'static;
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;

    /// The time of the wall clock.
    fn wall(&self) -> Wall;

    /// The time of the monotonic clock.
    fn monotonic(&self) -> Monotonic;

    /// Resolves when the monotonic clock shows `at`.
    fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static;

    /// Resolves after a delay on the wire, on which the clocks of the host have no effect.
    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static;

    /// Accepts the next connection.
    fn accept(&self, listener: &Self::Listener) -> impl Future<Output = io::Result<Self::Stream>>;

    /// Dials another node, from the address `from` if the platform can.
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

    /// The clock, if only clients move it. [`Self::wall`], [`Self::monotonic`] and
    /// [`Self::sleep_until`] use it then.
    fn manual_clock(&self) -> Option<&ManualClock> {
        None
    }

    /// Resolves with the next signal that asks the process to end.
    fn signal(&self) -> impl Future<Output = Signal> {
        std::future::pending()
    }

    /// Returns true if log lines are to be passed to [`Self::log`].
    fn logs(&self) -> bool {
        false
    }

    /// Receives a line of the log.
    fn log(&self, _line: &Line) {}

    /// True if there is an observer: [`Self::request`] receives commands, [`Self::reply`] replies,
    /// and [`Self::observed`] observations.
    const WATCHED: bool = false;

    /// Decides the fate of a whole command that has arrived, given as its bytes and as its
    /// arguments.
    fn request(&self, _peer: IpAddr, _conn: ConnId, _raw: &Bytes, _arguments: &[Bytes]) -> Fate {
        Fate::default()
    }

    /// Receives bytes that are about to be written.
    fn reply(&self, _peer: IpAddr, _conn: ConnId, _bytes: &Bytes) {}

    /// Receives an observation of the server.
    fn observed(&self, _observation: &Observation) {}
}
