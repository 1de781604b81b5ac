//! A node on the real network, by real time or by a clock that clients move. `lockstorm serve` runs
//! it for redis-cli and any other client.

use std::{
    cell::RefCell,
    convert::Infallible,
    fmt,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream, lookup_host},
};

use super::{DrivenNode, Ends, ManualClock, Platform, ports::Listening, serve};
use crate::{
    env::{Clock, Env, Files, Folder},
    event::Signal,
    log::Line,
    server::Server,
    time::{Monotonic, Wall},
};

/// The sockets, clock, files and log of a node on this machine.
///
/// It needs a [`tokio::task::LocalSet`] around it:
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use lockstorm_sim::{config::Config, drive, server::Server};
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:6379").await?;
/// let machine = drive::tokio::Machine::new().listen(listener);
/// let served = machine.run(drive::DrivenNode::new(), 1, |env| Server::new(Config::default(), env));
/// tokio::task::LocalSet::new().run_until(served).await;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "a machine does nothing until it runs a node"]
pub struct Machine {
    listeners: Listeners,
    bus: Listeners,
    manual_clock: bool,
    log: Option<LogSink>,
    signals: Option<Signals>,
    files: Option<Box<dyn Files>>,
    folder: Option<Box<dyn Folder>>,
    descriptors: Option<fn(usize) -> usize>,
}

/// Receives each line of the log with the time of the wall clock.
type LogSink = Box<dyn Fn(Wall, &Line)>;

/// Resolves with the next signal, repeatedly.
type Signals = Box<dyn FnMut(&mut Context<'_>) -> Poll<Signal>>;

impl Machine {
    /// Creates a machine with real time and without a listener.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Adds a listener for clients.
    pub fn listen(self, listener: TcpListener) -> Machine {
        self.listeners.tcp.push(listener);
        self
    }

    /// Adds a listener for other nodes of the cluster.
    pub fn listen_bus(self, listener: TcpListener) -> Machine {
        self.bus.tcp.push(listener);
        self
    }

    /// Adds a listener on a Unix socket.
    pub fn listen_unix(mut self, listener: UnixListener) -> Machine {
        self.listeners.unix.push(listener);
        self
    }

    /// Uses a manual clock. It starts at the time of the machine's clock, and moves only when a
    /// client says so: by DEBUG CLOCK ADVANCE, and by DEBUG SLEEP, which takes its time.
    pub fn manual_clock(mut self) -> Machine {
        self.manual_clock = true;
        self
    }

    /// Calls `log` with each line of the node's log, and with the time of its wall clock.
    pub fn log(mut self, log: impl Fn(Wall, &Line) + 'static) -> Machine {
        self.log = Some(Box::new(log));
        self
    }

    /// Polls `signals` for the signals that ask the node to end.
    pub fn signals(mut self, signals: impl FnMut(&mut Context<'_>) -> Poll<Signal> + 'static) -> Machine {
        self.signals = Some(Box::new(signals));
        self
    }

    /// Lets the node read and write files by name, such as its configuration and its users.
    pub fn files(mut self, files: impl Files + 'static) -> Machine {
        self.files = Some(Box::new(files));
        self
    }

    /// Calls `make_room` with the wanted number of clients when `maxclients` is set; it returns the
    /// number for which there are file descriptors.
    pub fn descriptors(mut self, make_room: fn(usize) -> usize) -> Machine {
        self.descriptors = Some(make_room);
        self
    }

    /// Lets the node keep its data in a folder. The caller loads the existing data with
    /// [`Server::open`](crate::server::Server::open).
    pub fn folder(mut self, folder: impl Folder + 'static) -> Machine {
        self.folder = Some(Box::new(folder));
        self
    }

    /// Serves until the server exits. `start` makes the server. `seed` seeds its PRNG, except for
    /// ids, which are different for any two servers.
    ///
    /// # Panics
    /// If the operating system has no random numbers.
    pub async fn run(self, node: DrivenNode, seed: u64, start: impl FnOnce(&mut Env) -> Server) {
        let started: Result<(), Infallible> = self.try_run(node, seed, |env| Ok(start(env))).await;
        let Ok(()) = started;
    }

    /// Serves with a server whose start may fail; then no client is served.
    ///
    /// # Errors
    /// Returns the error of `start`.
    ///
    /// # Panics
    /// If the operating system has no random numbers.
    pub async fn try_run<E>(
        self,
        node: DrivenNode,
        seed: u64,
        start: impl FnOnce(&mut Env) -> Result<Server, E>,
    ) -> Result<(), E> {
        let real = Real::new(self.manual_clock, self.log, self.signals);
        let mut env = Env::new(seed);
        env.set_ids(ChaCha8Rng::seed_from_u64(
            getrandom::u64().expect("the operating system has no random numbers"),
        ));
        (env.wall, env.monotonic) = (real.wall(), real.monotonic());
        (env.files, env.folder) = (self.files, self.folder);
        env.descriptors = self.descriptors;
        env.ports = Some(Box::new(self.listeners.tcp.clone()));
        env.strangers = true;
        if !self.manual_clock {
            env.clock = Some(Clock::new(machine_time, real.start));
        }
        env.script_clock = Some(machine_time);
        env.logging = real.logs().then(Default::default);
        let started = start(&mut env);
        if started.is_err() {
            // Write the log lines of the failed start here: no driver runs.
            env.log.iter().for_each(|line| real.log(line));
        }
        node.replace(started?);
        serve(real, self.listeners, Some(self.bus), node, env).await;
        Ok(())
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { listeners, manual_clock, .. } = self;
        f.debug_struct("Machine")
            .field("listeners", listeners)
            .field("manual_clock", manual_clock)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "how long commands and scripts take by a real clock; see Env")]
fn machine_time() -> Instant {
    Instant::now()
}

/// The listeners of a machine, or of its bus.
#[derive(Debug, Default)]
struct Listeners {
    tcp: Listening,
    unix: Vec<UnixListener>,
}

/// A connection over TCP or over a Unix socket.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

macro_rules! either {
    ($self:ident, $stream:ident => $do:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $do,
            Stream::Unix($stream) => $do,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// The clocks and sockets of the machine.
struct Real {
    start: Instant,
    manual: Option<ManualClock>,
    log: Option<LogSink>,
    signals: RefCell<Option<Signals>>,
}

impl Real {
    #[expect(clippy::disallowed_methods, reason = "this is the real clock's one door into the server")]
    fn new(manual: bool, log: Option<LogSink>, signals: Option<Signals>) -> Real {
        let manual = manual.then(|| {
            // Whole milliseconds, so that a test can compute with the reply of TIME.
            ManualClock::new(Wall::from_millis(machine_wall().as_millis()))
        });
        Real { start: Instant::now(), manual, log, signals: RefCell::new(signals) }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the real clock's one door into the server")]
fn machine_wall() -> Wall {
    Wall::ZERO + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Connects from an address of this machine; from any address if the machine does not have it, as a
/// server does.
async fn dial_from(host: &str, port: u16, from: IpAddr) -> io::Result<TcpStream> {
    let mut failed = io::ErrorKind::NotFound.into();
    for address in lookup_host((host, port)).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        let _ = socket.bind(SocketAddr::new(from, 0));
        match socket.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

impl Platform for Real {
    type Listener = Listeners;
    type Stream = Stream;

    fn wall(&self) -> Wall {
        self.manual.as_ref().map_or_else(machine_wall, ManualClock::wall)
    }

    fn monotonic(&self) -> Monotonic {
        let real = || Monotonic::ZERO + self.start.elapsed();
        self.manual.as_ref().map_or_else(real, ManualClock::monotonic)
    }

    fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static {
        let manual = self.manual.clone();
        let wait = self.wait(at.since(self.monotonic()));
        async move {
            match manual {
                Some(clock) => clock.sleep_until(at).await,
                None => wait.await,
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "real time passes by tokio's timer")]
    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static {
        tokio::time::sleep(delay)
    }

    async fn accept(&self, listeners: &Listeners) -> io::Result<Stream> {
        let stream = poll_fn(|cx| {
            if let Poll::Ready(accepted) = listeners.tcp.poll_accept(cx) {
                return Poll::Ready(accepted.map(Stream::Tcp));
            }
            for listener in &listeners.unix {
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                    return Poll::Ready(accepted.map(|(stream, _)| Stream::Unix(stream)));
                }
            }
            Poll::Pending
        });
        let stream = stream.await?;
        if let Stream::Tcp(stream) = &stream {
            stream.set_nodelay(true)?;
        }
        Ok(stream)
    }

    #[expect(clippy::disallowed_methods, reason = "a real node dials a real master")]
    async fn dial(&self, host: &str, port: u16, from: Option<IpAddr>) -> io::Result<Stream> {
        let stream = match from {
            Some(from) => dial_from(host, port, from).await?,
            None => TcpStream::connect((host, port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    fn ends(&self, stream: &Stream) -> io::Result<Ends> {
        match stream {
            Stream::Tcp(stream) => Ok(Ends::tcp(stream.peer_addr()?, stream.local_addr()?)),
            Stream::Unix(stream) => {
                // Both ends have the name of the file, as in Redis.
                let name = stream
                    .local_addr()?
                    .as_pathname()
                    .map_or_else(String::new, |path| format!("{}:0", path.display()));
                Ok(Ends { host: Ends::NOBODY, peer: name.clone(), local: name })
            }
        }
    }

    fn manual_clock(&self) -> Option<&ManualClock> {
        self.manual.as_ref()
    }

    async fn signal(&self) -> Signal {
        poll_fn(|cx| {
            let mut signals = self.signals.borrow_mut();
            let Some(signals) = signals.as_mut() else { return Poll::Pending };
            Poll::Ready(ready!(signals(cx)))
        })
        .await
    }

    fn logs(&self) -> bool {
        self.log.is_some()
    }

    fn log(&self, line: &Line) {
        if let Some(log) = &self.log {
            log(self.wall(), line);
        }
    }
}
