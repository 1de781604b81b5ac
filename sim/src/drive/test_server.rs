//! A server of one's own for a test: on a free port, within milliseconds, gone when it is dropped.

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
/// It lives on a thread of its own, so that it serves tests of any runtime, or of none, and ends
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
    /// If no port is free, or no thread.
    pub async fn start() -> io::Result<TestServer> {
        TestServer::builder().start().await
    }

    /// As [`TestServer::start`], for tests that are not asynchronous.
    ///
    /// # Errors
    /// If no port is free, or no thread.
    pub fn start_blocking() -> io::Result<TestServer> {
        TestServer::builder().start_blocking()
    }

    /// Settings that differ from the defaults.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL, such as `redis://127.0.0.1:41273`, with the password if it has one.
    pub fn url(&self) -> String {
        match &self.password[..] {
            "" => format!("redis://{}", self.address),
            password => format!("redis://:{}@{}", escaped(password), self.address),
        }
    }
}

/// A password as it is written in a URL.
fn escaped(password: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    password.bytes().map(escape).collect()
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

/// Sets up a [`TestServer`].
#[derive(Default)]
#[must_use = "a builder does nothing until it starts"]
pub struct TestServerBuilder {
    config: Config,
    options: Vec<(String, String)>,
    manual_clock: bool,
    seed: u64,
}

impl TestServerBuilder {
    /// Clients must authenticate (`requirepass`).
    pub fn password(self, password: &str) -> Self {
        self.option("requirepass", password)
    }

    /// Sets any option of `redis.conf`, but for those that say where it listens.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The whole configuration, to which [`Self::option`] adds.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Time stands still until a client moves it with `DEBUG CLOCK ADVANCE <milliseconds>`;
    /// expiries, time-outs of blocking commands and the periodic work all go by it.
    pub fn manual_clock(mut self) -> Self {
        self.manual_clock = true;
        self
    }

    /// The seed of the server's PRNG: what it draws (evicted keys, random members) depends on
    /// nothing else. Ids alone, by which servers know each other's history, are never the same
    /// twice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// If an option is none or does not take its value, if no port is free, or no thread.
    #[expect(
        clippy::unused_async,
        reason = "what it costs is a port and a thread, and may come to cost a wait"
    )]
    pub async fn start(self) -> io::Result<TestServer> {
        self.start_blocking()
    }

    /// As [`Self::start`], for tests that are not asynchronous.
    ///
    /// # Errors
    /// If an option is none or does not take its value, if no port is free, or no thread.
    pub fn start_blocking(self) -> io::Result<TestServer> {
        let TestServerBuilder { mut config, options, manual_clock, seed } = self;
        for (name, value) in options {
            options::set_at_start(&mut config, &name, &value)
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        config.port = address.port();
        config.bind = address.ip().to_string();
        let password = config.requirepass.clone();
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
