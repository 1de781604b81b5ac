//! A server behind sockets. The loop is written once, over what a [`Platform`] offers; three thin platforms carry it:
//! a host of the [world](crate::world), the real network, and a host of a user's own `turmoil::Sim`.

mod node;
mod test_server;
mod wire;

pub mod tokio;
pub mod turmoil;
pub mod turmoil_net;

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ::tokio::io::{AsyncRead, AsyncWrite};
use bytes::Bytes;

pub use node::{Node, serve};
pub use test_server::TestServer;

use crate::{
    env::Observation,
    event::ConnId,
    time::{Monotonic, Wall},
    world::Act,
};

/// The sockets and clocks of the place a server runs in.
///
/// Whoever polls [`serve`] must do so within a [`tokio::task::LocalSet`](::tokio::task::LocalSet).
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

    /// Resolves after so much time on the wire, whatever the clocks of the host do.
    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static;

    /// The next connection.
    fn accept(&self, listener: &Self::Listener) -> impl Future<Output = io::Result<Self::Stream>>;

    /// A new connection to another node.
    fn dial(&self, host: &str, port: u16) -> impl Future<Output = io::Result<Self::Stream>>;

    /// The addresses of a connection: the peer's and the own one.
    ///
    /// # Errors
    /// If it is not connected any more.
    fn addresses(&self, stream: &Self::Stream) -> io::Result<(SocketAddr, SocketAddr)>;

    /// Somebody watches: commands are shown to [`Self::request`], replies to [`Self::reply`], observations to
    /// [`Self::observed`].
    const WATCHED: bool = false;

    /// A whole command arrived, here as its bytes and as its arguments; the answer is what becomes of it.
    fn request(&self, _peer: IpAddr, _conn: ConnId, _raw: &Bytes, _arguments: &[Bytes]) -> Option<Act> {
        None
    }

    /// Bytes are about to be written.
    fn reply(&self, _peer: IpAddr, _conn: ConnId, _bytes: &Bytes) {}

    /// The server saw or did something.
    fn observed(&self, _observation: &Observation) {}
}
