//! A private server for a test: it has a free port, starts within milliseconds, and ends when it is
//! dropped.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    thread::JoinHandle,
};

use tokio::{net::TcpListener, sync::oneshot, task::LocalSet};

use super::{DrivenNode, tokio::Machine};
use crate::{
    config::{Config, options},
    server::Server,
};

/// A simulated Redis on a loopback port, for tests of code that wants a real connection.
///
/// It runs on its own thread, so that it serves tests of any async runtime, or of none. It ends
/// when it is dropped.
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = lockstorm_sim::TestServer::start().await?;
/// # #[expect(clippy::disallowed_methods)]
/// let mut stream = tokio::net::TcpStream::connect(server.address()).await?;
/// stream.write_all(b"PING\r\n").await?;
/// let mut answer = [0; 7];
/// stream.read_exact(&mut answer).await?;
/// assert_eq!(&answer, b"+PONG\r\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    password: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server with the default configuration.
    ///
    /// # Errors
    /// If no port or no thread is available.
    pub async fn start() -> io::Result<TestServer> {
        TestServer::builder().start().await
    }

    /// Starts a server like [`TestServer::start`], for tests that are not asynchronous.
    ///
    /// # Errors
    /// If no port or no thread is available.
    pub fn start_blocking() -> io::Result<TestServer> {
        TestServer::builder().start_blocking()
    }

    /// Returns a builder for settings that differ from the defaults.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let server = lockstorm_sim::TestServer::builder()
    ///     .password("secret")
    ///     .option("maxmemory", "10mb")
    ///     .option("maxmemory-policy", "allkeys-lru")
    ///     .manual_clock() // time moves by DEBUG CLOCK ADVANCE <milliseconds>
    ///     .start()
    ///     .await?;
    /// assert_eq!(server.url(), format!("redis://:secret@{}", server.address()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder::default()
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its address, such as `redis://127.0.0.1:41273`, with the password if it has one.
    pub fn url(&self) -> String {
        match &self.password[..] {
            "" => format!("redis://{}", self.address),
            password => format!("redis://:{}@{}", escaped(password), self.address),
        }
    }
}

/// Escapes a password for a URL.
fn escaped(password: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    password.bytes().map(escape).collect()
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Wait for the thread, which SHUTDOWN may have ended already: the server is gone when this
        // returns.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Builds a [`TestServer`].
#[derive(Default)]
#[must_use = "a builder does nothing until it starts"]
pub struct TestServerBuilder {
    config: Config,
    options: Vec<(String, String)>,
    manual_clock: bool,
    seed: u64,
}

impl TestServerBuilder {
    /// Makes clients authenticate (`requirepass`).
    pub fn password(self, password: &str) -> Self {
        self.option("requirepass", password)
    }

    /// Sets an option of `redis.conf`, except those of the address on which it listens.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the whole configuration, to which [`Self::option`] adds.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Stops time until a client moves it with `DEBUG CLOCK ADVANCE <milliseconds>`. Expiries,
    /// timeouts of blocking commands and the periodic work all follow it.
    pub fn manual_clock(mut self) -> Self {
        self.manual_clock = true;
        self
    }

    /// Sets the seed of the server's PRNG. Its draws (evicted keys, random members) depend on
    /// nothing else. Only ids, by which servers recognize each other's history, are never the same
    /// twice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// If an option does not exist or does not take its value, or no port or no thread is
    /// available.
    #[expect(
        clippy::unused_async,
        reason = "what it costs is a port and a thread, and may come to cost a wait"
    )]
    pub async fn start(self) -> io::Result<TestServer> {
        self.start_blocking()
    }

    /// Starts the server like [`Self::start`], for tests that are not asynchronous.
    ///
    /// # Errors
    /// If an option does not exist or does not take its value, or no port or no thread is
    /// available.
    pub fn start_blocking(self) -> io::Result<TestServer> {
        let TestServerBuilder { mut config, options, manual_clock, seed } = self;
        for (name, value) in options {
            options::set_at_start(&mut config, &name, &value)
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        config.network.port = address.port();
        config.network.bind = address.ip().to_string();
        let password = config.security.requirepass.clone();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = move || {
            LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).expect("the runtime takes sockets");
                let mut machine = Machine::new().listen(listener);
                if manual_clock {
                    machine = machine.manual_clock();
                }
                let served = machine.run(DrivenNode::new(), seed, |env| Server::new(config, env));
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = served => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name(format!("redis on {}", address.port())).spawn(serve)?;
        Ok(TestServer { address, password, stop: Some(stop), thread: Some(thread) })
    }
}

impl fmt::Debug for TestServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.options.iter().map(|(name, _)| &name[..]).collect();
        let TestServerBuilder { manual_clock, seed, .. } = self;
        // Values may be secrets.
        write!(f, "TestServerBuilder {{ options: {names:?}, manual_clock: {manual_clock}, seed: {seed} }}")
    }
}
