//! A node on the real network, by real time: what `lockstorm serve` runs, for redis-cli and any other client.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::net::{TcpListener, TcpStream};

use super::{Node, Platform, serve};
use crate::{
    env::Env,
    server::Server,
    time::{Monotonic, Wall},
};

/// Serves on `listener` until the server exits. `start` makes the server; `seed` is where its dice start.
///
/// It needs a [`tokio::task::LocalSet`] around it:
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use lockstorm_sim::{config::Config, drive, server::Server};
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:6379").await?;
/// let served = drive::tokio::run(listener, drive::Node::new(), 1, |env| Server::new(Config::default(), env));
/// tokio::task::LocalSet::new().run_until(served).await;
/// # Ok(())
/// # }
/// ```
pub async fn run(listener: TcpListener, node: Node, seed: u64, start: impl FnOnce(&mut Env) -> Server) {
    let real = Real::new();
    let mut env = Env::new(seed);
    (env.wall, env.monotonic) = (real.wall(), real.monotonic());
    let server = start(&mut env);
    node.replace(server);
    serve(real, listener, node, env).await;
}

/// The clocks and sockets of the machine.
#[derive(Debug)]
struct Real {
    start: Instant,
}

impl Real {
    #[expect(clippy::disallowed_methods, reason = "this is the real clock's one door into the server")]
    fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Platform for Real {
    type Listener = TcpListener;
    type Stream = TcpStream;

    #[expect(clippy::disallowed_methods, reason = "this is the real clock's one door into the server")]
    fn wall(&self) -> Wall {
        Wall::ZERO + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::ZERO + self.start.elapsed()
    }

    fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static {
        self.wait(at.since(self.monotonic()))
    }

    #[expect(clippy::disallowed_methods, reason = "real time passes by tokio's timer")]
    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static {
        tokio::time::sleep(delay)
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<TcpStream> {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    #[expect(clippy::disallowed_methods, reason = "a real node dials a real master")]
    async fn dial(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn addresses(&self, stream: &TcpStream) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((stream.peer_addr()?, stream.local_addr()?))
    }
}
