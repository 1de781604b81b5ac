//! `lockstorm serve`: the simulated Redis behind a real port, for redis-cli and every other client.

use clap::Args;
use lockstorm_sim::{
    config::Config,
    drive::{Node, tokio as drive},
    server::Server,
};
use miette::{IntoDiagnostic, Result, WrapErr};
use tokio::{net::TcpListener, task::LocalSet};

use super::{Exit, out::outln};

/// Serve the simulated Redis on a real TCP port
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The port; 0 for any free one
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    bind: std::net::IpAddr,
    /// Where the server's dice start: what it draws (ids, evicted keys, random members) depends on nothing else
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Serve {
    pub(super) fn run(self) -> Result<Exit> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().into_diagnostic()?;
        LocalSet::new().block_on(&runtime, async {
            let listener = TcpListener::bind((self.bind, self.port)).await.into_diagnostic();
            let listener =
                listener.wrap_err_with(|| format!("cannot listen on {}:{}", self.bind, self.port))?;
            let address = listener.local_addr().into_diagnostic()?;
            outln!("listening on {address}; try: redis-cli -p {}", address.port());
            let config = Config { port: address.port(), ..Config::default() };
            drive::run(listener, Node::new(), self.seed, |env| Server::new(config, env)).await;
            Ok(Exit::Expected)
        })
    }
}
