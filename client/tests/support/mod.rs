//! Private `redis-server` processes for tests, each on a free loopback port.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod program;
pub(crate) mod world;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use program::Program;

/// A private server; dropping it kills the process.
pub(crate) struct RedisServer {
    port: u16,
    process: Child,
    program: Program,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts an empty server; prints a line to stderr and returns `None` if `redis-server` is not
    /// installed.
    ///
    /// # Panics
    /// If it is missing despite `LOCKSTORM_REQUIRE_REDIS=1`, or does not start.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Like [`RedisServer::start`], with options such as `["--replicaof", "127.0.0.1 6379"]`.
    pub(crate) fn start_with(options: &[&str]) -> Option<Self> {
        Self::start_each(|| options.iter().map(ToString::to_string).collect())
    }

    /// Like [`RedisServer::start_with`], with a second port for TLS. Also `None` if the server in
    /// `LOCKSTORM_REDIS_SERVER` was built without TLS.
    pub(crate) fn start_tls(options: &[&str]) -> Option<(Self, u16)> {
        if std::env::var("LOCKSTORM_REDIS_SERVER").is_ok() && !has_tls() {
            eprintln!("skipped: {} was built without TLS", program());
            return None;
        }
        let mut port = 0;
        let server = Self::start_each(|| {
            port = free_port();
            let tls = ["--tls-port".to_owned(), port.to_string()];
            tls.into_iter().chain(options.iter().map(ToString::to_string)).collect()
        })?;
        Some((server, port))
    }

    /// Like [`RedisServer::start_with`], with options that are created for each try, as those with
    /// a second port must be.
    pub(crate) fn start_each(mut options: impl FnMut() -> Vec<String>) -> Option<Self> {
        Self::start_on(&Program::Installed, |_| options())
    }

    /// Like [`RedisServer::start_each`], with another program; the options may depend on the port.
    pub(crate) fn start_on(program: &Program, mut options: impl FnMut(u16) -> Vec<String>) -> Option<Self> {
        if *program == Program::Installed && version().is_none() {
            let required = std::env::var("LOCKSTORM_REQUIRE_REDIS").is_ok_and(|value| value == "1");
            assert!(!required, "redis-server is not on the PATH, and LOCKSTORM_REQUIRE_REDIS=1");
            eprintln!("skipped: redis-server is not on the PATH");
            return None;
        }
        // Another process may take the free port before the server does; then the next port is
        // tried.
        for _ in 0..20 {
            let port = free_port();
            let options = options(port);
            if let Some(process) = launch(program, port, &options) {
                return Some(Self { port, process, program: program.clone(), options });
            }
        }
        panic!("{program} does not start");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server without notice and keeps its port.
    pub(crate) fn crash(&mut self) {
        self.process.kill().expect("the server is ours to kill");
        self.process.wait().expect("a killed server ends");
    }

    /// Starts it again after [`RedisServer::crash`], with the data of the last SAVE; else empty.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// Like [`RedisServer::restart`], with more options, which later restarts keep.
    pub(crate) fn restart_with(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(ToString::to_string));
        for _ in 0..50 {
            if let Some(process) = launch(&self.program, self.port, &self.options) {
                self.process = process;
                return;
            }
            pause();
        }
        panic!("redis-server does not start again on port {}", self.port);
    }

    /// Stops or continues the process; a stopped one neither reads nor replies.
    pub(crate) fn signal(&self, signal: &str) {
        let done = Command::new("kill").arg(format!("-{signal}")).arg(self.process.id().to_string()).status();
        assert!(done.expect("kill is installed").success());
    }

    /// Runs one command and returns its reply.
    pub(crate) async fn command(&self, parts: &[&str]) -> redis::Value {
        self.try_command(parts).await.expect("a good command, and an answer")
    }

    /// The number of requests that it has refused with this code.
    pub(crate) async fn refusals(&self, code: &str) -> usize {
        let stats: String = redis::from_redis_value(self.command(&["INFO", "errorstats"]).await).unwrap();
        let count = stats.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
        count.map_or(0, |count| count.trim().parse().unwrap())
    }

    /// Like [`RedisServer::command`], for a command that may fail.
    pub(crate) async fn try_command(&self, parts: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd(parts[0]).arg(&parts[1..]).query_async(&mut connection).await
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // A replica writes a snapshot even without save points.
        let _ = std::fs::remove_file(snapshot_of(self.port));
    }
}

/// Runs `play` against the simulator and against `redis-server`, with the address of an empty
/// server.
pub(crate) async fn on_each_server(play: impl AsyncFn(&str)) {
    let simulated = lockstorm_sim::TestServer::start().await.expect("a free port");
    play(&simulated.url()).await;
    if let Some(real) = RedisServer::start() {
        play(&real.url()).await;
    }
}

/// The path of a server's snapshot.
fn snapshot_of(port: u16) -> PathBuf {
    std::env::temp_dir().join(format!("lockstorm-{port}.rdb"))
}

/// A free port outside the range that the system assigns to connections, one of which could take it
/// before a server does.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    // Test processes that run at the same time begin at different ports.
    let first = std::process::id() % 1_000 * 22;
    for _ in 0..1_000 {
        let port = 10_000 + (first + TRIED.fetch_add(1, Ordering::Relaxed)) % 22_000;
        let port = u16::try_from(port).expect("below 32,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("there is no free port");
}

/// The server under test: `redis-server` on the PATH, or the program in `LOCKSTORM_REDIS_SERVER`,
/// such as an older Redis or a Valkey.
pub(crate) fn program() -> String {
    std::env::var("LOCKSTORM_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

/// The major version of the server.
pub(crate) fn version() -> Option<u32> {
    let told = Command::new(program()).arg("--version").output().ok()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let version = told.split_once("v=").and_then(|(_, version)| version.split('.').next()?.parse().ok());
    Some(version.unwrap_or_else(|| panic!("{} says no version: {told}", program())))
}

/// Returns true if the server was built with TLS: only then it fails because of the missing
/// certificate, and not because of TLS.
fn has_tls() -> bool {
    let told = Command::new(program()).args(["--port", "0", "--tls-port", "1"]).output();
    let told = told.expect("the server can be started");
    let text = [told.stdout, told.stderr].concat();
    String::from_utf8_lossy(&text).contains("No tls-cert-file configured")
}

fn launch(program: &Program, port: u16, options: &[String]) -> Option<Child> {
    let mut command = program.server(port, &snapshot_of(port), options);
    let mut process = command.spawn().expect("a server can be started");
    comes_up(port, &mut process).then_some(process)
}

/// Returns true once a process answers on this port; otherwise ends it and returns false.
pub(crate) fn comes_up(port: u16, process: &mut Child) -> bool {
    for _ in 0..200 {
        if answers(port) {
            return true;
        }
        if process.try_wait().expect("our own child").is_some() {
            return false;
        }
        pause();
    }
    let _ = process.kill();
    let _ = process.wait();
    false
}

/// Returns true if it replies, even to require a password or because it is loading.
fn answers(port: u16) -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test talks to a real server")]
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut reply = [0; 5];
    stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut reply).is_ok()
        && [b"+PONG", b"-NOAU", b"-LOAD"].contains(&&reply)
}

#[expect(clippy::disallowed_methods, reason = "waiting for a real process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// The treatment of bytes by a [`Proxy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Pass,
    /// Keeps the bytes, and delivers them when the flow passes again.
    Hold,
    /// Discards the bytes.
    Swallow,
}

/// The state of one direction: `flow` for connections numbered below `below`, and [`Flow::Pass`]
/// for the others.
#[derive(Debug, Clone, Copy)]
struct Setting {
    flow: Flow,
    below: usize,
}

impl Setting {
    const PASS: Self = Self { flow: Flow::Pass, below: 0 };

    fn of(self, connection: usize) -> Flow {
        if connection < self.below { self.flow } else { Flow::Pass }
    }
}

/// A connection between a client and a server that a test can hold up in either direction.
pub(crate) struct Proxy {
    port: u16,
    requests: watch::Sender<Setting>,
    replies: watch::Sender<Setting>,
    connections: Arc<AtomicUsize>,
    tasks: Arc<std::sync::Mutex<tokio::task::JoinSet<()>>>,
}

impl Proxy {
    pub(crate) async fn to(server: &RedisServer) -> Self {
        Self::to_port(server.port()).await
    }

    pub(crate) async fn to_port(target: u16) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let (requests, replies) = (watch::Sender::new(Setting::PASS), watch::Sender::new(Setting::PASS));
        let connections = Arc::new(AtomicUsize::new(0));
        let tasks = Arc::new(std::sync::Mutex::new(tokio::task::JoinSet::new()));
        let (request_flow, reply_flow, count, all) =
            (requests.clone(), replies.clone(), connections.clone(), Arc::downgrade(&tasks));
        let accept = async move {
            while let Ok((client, _)) = listener.accept().await {
                #[expect(clippy::disallowed_methods, reason = "a test talks to a real server")]
                let Ok(server) = tokio::net::TcpStream::connect(("127.0.0.1", target)).await else {
                    continue;
                };
                let Some(all) = all.upgrade() else { return };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let mut all = all.lock().expect("no test panics with this held");
                all.spawn(pump(number, from_client, to_server, request_flow.subscribe()));
                all.spawn(pump(number, from_server, to_client, reply_flow.subscribe()));
            }
        };
        tasks.lock().expect("just made").spawn(accept);
        Self { port, requests, replies, connections, tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Sets the flow of requests on all present and future connections.
    pub(crate) fn requests(&self, flow: Flow) {
        self.requests.send_replace(Setting { flow, below: usize::MAX });
    }

    /// Sets the flow of requests on the present connections, but not on later ones.
    pub(crate) fn requests_on_open_connections(&self, flow: Flow) {
        self.requests.send_replace(Setting { flow, below: self.connections() });
    }

    /// Sets the flow of replies on all present and future connections.
    pub(crate) fn replies(&self, flow: Flow) {
        self.replies.send_replace(Setting { flow, below: usize::MAX });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Ok(mut tasks) = self.tasks.lock() {
            tasks.abort_all();
        }
    }
}

async fn pump(
    connection: usize,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut setting: watch::Receiver<Setting>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let flowing = setting.wait_for(|setting| setting.of(connection) != Flow::Hold).await;
        let Ok(flow) = flowing.map(|setting| setting.of(connection)) else { return };
        if flow == Flow::Pass && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Spawns `work` beside the test.
pub(crate) fn task<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    #[expect(clippy::disallowed_methods, reason = "the test's own task, not the client's")]
    tokio::task::spawn(work)
}

/// The outcome of `work`, which must come within 20 s: ample on a busy machine, and less than the
/// lease of 30 s that a waiter sleeps for without a message.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "a limit for a test, in real time")]
    let done = tokio::time::timeout(Duration::from_secs(20), work).await;
    done.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Polls until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let polled = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    soon(what, polled).await;
}

/// Completes when `count` clients subscribe to a channel.
pub(crate) async fn listeners(url: &str, channel: &str, count: i64) {
    eventually("they listen", async || {
        let reply = command(url, &format!("PUBSUB NUMSUB {channel}")).await;
        matches!(reply, redis::Value::Array(reply) if reply[1] == redis::Value::Int(count))
    })
    .await;
}

/// Runs one command and returns its reply.
pub(crate) async fn command(url: &str, words: &str) -> redis::Value {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>()).query_async(&mut connection).await.unwrap()
}

/// A client with timeouts short enough for a test and long enough for a busy machine.
pub(crate) async fn impatient(url: &str) -> lockstorm_client::Client {
    lockstorm_client::Client::builder()
        .endpoint(url)
        .response_timeout(Duration::from_millis(500))
        .connect_timeout(Duration::from_millis(1000))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
        .connect()
        .await
        .unwrap()
}

/// Counts the requests of clients.
#[derive(Default)]
pub(crate) struct Attempts(AtomicUsize);

impl Attempts {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl lockstorm_client::Observer for Attempts {
    fn observe(&self, event: &lockstorm_client::Event<'_>) {
        if matches!(event.kind, lockstorm_client::EventKind::Attempt) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}
