//! A node inside a user's own `turmoil::Sim`.

use std::{future::Future, io, net::IpAddr, time::Duration};

use turmoil::net::{TcpListener, TcpStream};

use super::{DrivenNode, Ends, Platform, serve};
use crate::{
    env::Env,
    server::Server,
    time::{Monotonic, Wall},
};

/// Runs a node on the current host of a `turmoil` simulation, on this port, until it exits. `start`
/// makes the server; it receives the server from before a crash, if `node` still holds it. `seed`
/// seeds the PRNG.
///
/// ```
/// use lockstorm_sim::{config::Config, drive, server::Server};
/// let node = drive::DrivenNode::new();
/// let mut sim = turmoil::Builder::new().build();
/// sim.host("redis", move || {
///     let node = node.clone();
///     async move {
///         let start = |env: &mut _, _| Server::new(Config::default(), env);
///         Ok(drive::turmoil::run(6379, node, 1, start).await?)
///     }
/// });
/// ```
///
/// # Errors
/// If the port is taken.
pub async fn run(
    port: u16,
    node: DrivenNode,
    seed: u64,
    start: impl FnOnce(&mut Env, Option<Server>) -> Server,
) -> io::Result<()> {
    let host = Host;
    let mut env = Env::new(seed);
    (env.wall, env.monotonic) = (host.wall(), host.monotonic());
    let server = start(&mut env, node.take());
    node.replace(server);
    let listener = TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port)).await?;
    let bus = match node.look(|server| server.listens_for_cluster()).flatten() {
        Some(port) => Some(TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port)).await?),
        None => None,
    };
    serve(host, listener, bus, node, env).await;
    Ok(())
}

/// The current host. `turmoil` has one clock for everything.
#[derive(Debug)]
struct Host;

impl Platform for Host {
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn wall(&self) -> Wall {
        Wall::ZERO + turmoil::since_epoch().unwrap_or_default()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::ZERO + turmoil::sim_elapsed().unwrap_or_default()
    }

    fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static {
        self.wait(at.since(self.monotonic()))
    }

    #[expect(clippy::disallowed_methods, reason = "turmoil's time is tokio's, paused")]
    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static {
        tokio::time::sleep(delay)
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<TcpStream> {
        listener.accept().await.map(|(stream, _)| stream)
    }

    // A host has only one address to dial from.
    async fn dial(&self, host: &str, port: u16, _: Option<IpAddr>) -> io::Result<TcpStream> {
        TcpStream::connect((host, port)).await
    }

    fn ends(&self, stream: &TcpStream) -> io::Result<Ends> {
        Ok(Ends::tcp(stream.peer_addr()?, stream.local_addr()?))
    }
}
