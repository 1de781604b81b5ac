//! A server of one's own for a test: on a free port, within milliseconds, gone when it is dropped.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    thread::JoinHandle,
};

use tokio::{net::TcpListener, sync::oneshot, task::LocalSet};

use super::{Node, tokio as real};
use crate::{config::Config, server::Server};

/// A simulated Redis on a loopback port, for tests of code that wants a real connection.
///
/// It lives on a thread of its own, so that it serves tests of any runtime, or of none.
///
/// ```
/// use std::{io::{Read, Write}, net::TcpStream};
/// let server = lockstorm_sim::TestServer::start()?;
/// let mut stream = TcpStream::connect(server.address())?;
/// stream.write_all(b"PING\r\n")?;
/// let mut answer = [0; 7];
/// stream.read_exact(&mut answer)?;
/// assert_eq!(&answer, b"+PONG\r\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server with the default configuration.
    ///
    /// # Errors
    /// If no port is free, or no thread.
    pub fn start() -> io::Result<TestServer> {
        TestServer::with_config(Config::default())
    }

    /// Starts a server with this configuration, but for its port, which is any free one.
    ///
    /// # Errors
    /// If no port is free, or no thread.
    pub fn with_config(config: Config) -> io::Result<TestServer> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = move || {
            LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).expect("the runtime takes sockets");
                let config = Config { port: address.port(), ..config };
                let served = real::run(listener, Node::new(), 0, |env| Server::new(config, env));
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = served => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name(format!("redis on {}", address.port())).spawn(serve)?;
        Ok(TestServer { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL, such as `redis://127.0.0.1:41273`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Whether it still runs or has ended by SHUTDOWN, it is gone when this returns.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
