//! The interface to the outside: clocks, random numbers, connections and tasks reach the client
//! only through [`Env`].

use std::future::Future;
use std::io;
use std::ops::{Add, Sub};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::{Error, Result};
use crate::mutex::locked;

/// A moment of a clock that never steps and stops while the machine is suspended
/// (`CLOCK_MONOTONIC`). Timeouts are measured with it. The origin is arbitrary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub Duration);

/// A moment of a clock that never steps and continues while the machine is suspended
/// (`CLOCK_BOOTTIME`). Leases are measured with it, because the server's clock continues as well.
/// The origin is arbitrary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boottime(pub Duration);

/// The time since the Unix epoch by a clock that people and NTP set. Only the fair lock's queue
/// needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub Duration);

macro_rules! moment {
    ($name:ident) => {
        impl Add<Duration> for $name {
            type Output = Self;
            /// Saturates: a moment beyond the range never comes.
            fn add(self, more: Duration) -> Self {
                Self(self.0.saturating_add(more))
            }
        }
        impl Sub<$name> for $name {
            type Output = Duration;
            /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
            fn sub(self, earlier: Self) -> Duration {
                self.0.saturating_sub(earlier.0)
            }
        }
    };
}
moment!(Monotonic);
moment!(Boottime);
moment!(Wall);

/// A bidirectional stream of bytes, such as a TCP connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to a server, as [`Env::dial`] returns it.
pub type BoxStream = Box<dyn Stream>;

/// The environment of a client.
///
/// [`TokioEnv`] is the real environment and the default, so most users never need this trait. A
/// simulator implements it to control every clock, random number, packet and task of the client.
pub trait Env: Send + Sync + 'static {
    /// Returns the time of the monotonic clock, for timeouts.
    fn now(&self) -> Monotonic;
    /// Returns the time of the clock that continues during suspend, for leases.
    fn boottime(&self) -> Boottime;
    /// Returns the reading of the wall clock, for deadlines in Redis and for TLS certificates.
    fn wall(&self) -> Wall;
    /// Completes when [`Env::now`] has reached `deadline`.
    fn sleep_until(&self, deadline: Monotonic) -> BoxFuture<'static, ()>;
    /// Returns 64 random bits. They name owners and requests, so they must not repeat between
    /// processes.
    fn random(&self) -> u64;
    /// Opens a connection. The client limits the time itself.
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<BoxStream>>;
    /// Opens a connection to a Unix socket. By default returns an error, for environments without
    /// such sockets.
    fn dial_unix(&self, _path: &Path) -> BoxFuture<'static, io::Result<BoxStream>> {
        let none = io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets here");
        Box::pin(std::future::ready(Err(none)))
    }
    /// Runs a task to its end, independently of the caller.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// The real environment, on a tokio runtime.
///
/// A copy of the process's memory (after a fork, or in a machine snapshot that is started twice)
/// draws the same random numbers for a while, and so gives owners the same names. Create the client
/// after that.
#[derive(Debug, Clone)]
pub struct TokioEnv {
    // Kept, because a guard that is dropped outside of the runtime must still be able to release
    // its lock.
    runtime: tokio::runtime::Handle,
    drawn: Arc<Mutex<Drawn>>,
}

/// Random numbers drawn in advance. A lock takes two, and a system call for each would be a
/// twentieth of its cost.
#[derive(Default)]
struct Drawn(Vec<u64>);

impl Drawn {
    /// The number of values drawn in one system call.
    const AT_ONCE: usize = 64;

    fn next(&mut self) -> u64 {
        if self.0.is_empty() {
            let mut bytes = [0; Self::AT_ONCE * size_of::<u64>()];
            // The operating system's generator does not fail on a machine that has finished
            // booting.
            getrandom::fill(&mut bytes).expect("the operating system has no random numbers");
            self.0.extend(bytes.as_chunks().0.iter().map(|number| u64::from_ne_bytes(*number)));
        }
        self.0.pop().expect("it was just filled")
    }
}

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Hide the numbers: they will name owners.
        f.write_str("Drawn")
    }
}

impl TokioEnv {
    /// Uses the runtime on which the caller runs.
    ///
    /// # Errors
    /// When the caller does not run on a tokio runtime.
    pub fn current() -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|error| Error::config(format!("not on a tokio runtime: {error}")))?;
        Ok(Self { runtime, drawn: Arc::default() })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOTTIME: rustix::time::ClockId = rustix::time::ClockId::Boottime;
// Darwin's CLOCK_MONOTONIC continues during sleep; elsewhere no better clock exists.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOTTIME: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

fn read_clock(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    // A wall clock set before 1970 reads as 1970.
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

impl Env for TokioEnv {
    fn now(&self) -> Monotonic {
        Monotonic(read_clock(rustix::time::ClockId::Monotonic))
    }

    fn boottime(&self) -> Boottime {
        Boottime(read_clock(BOOTTIME))
    }

    fn wall(&self) -> Wall {
        Wall(read_clock(rustix::time::ClockId::Realtime))
    }

    fn sleep_until(&self, deadline: Monotonic) -> BoxFuture<'static, ()> {
        let wait = deadline - self.now();
        #[expect(clippy::disallowed_methods, reason = "this is the seam: the real clock behind Env")]
        let sleep = tokio::time::sleep(wait);
        Box::pin(sleep)
    }

    fn random(&self) -> u64 {
        locked(&self.drawn).next()
    }

    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<BoxStream>> {
        let host = host.to_owned();
        Box::pin(async move {
            #[expect(clippy::disallowed_methods, reason = "this is the seam: the real wire behind Env")]
            let stream = tokio::net::TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxStream)
        })
    }

    #[cfg(unix)]
    fn dial_unix(&self, path: &Path) -> BoxFuture<'static, io::Result<BoxStream>> {
        let path = path.to_owned();
        Box::pin(async move {
            #[expect(clippy::disallowed_methods, reason = "this is the seam: the real wire behind Env")]
            let stream = tokio::net::UnixStream::connect(path).await?;
            Ok(Box::new(stream) as BoxStream)
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.runtime.spawn(task));
    }
}

/// Returns the outcome of `work`, or `None` if `limit` comes first. Work that is already done needs
/// no timer.
///
/// The caller pins the work. A future that is moved into an async function takes its memory there
/// twice; four nested functions would take sixteen times the memory.
pub(crate) async fn within<T>(
    env: &dyn Env,
    limit: Monotonic,
    mut work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    let mut sleep = None;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(done) = work.poll_unpin(cx) {
            return Poll::Ready(Some(done));
        }
        let sleep = sleep.get_or_insert_with(|| env.sleep_until(limit));
        sleep.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// Sleeps for `wait`.
pub(crate) async fn pause(env: &dyn Env, wait: Duration) {
    env.sleep_until(env.now() + wait).await;
}

/// Returns a number drawn evenly from `0..=most`.
///
/// The modulus favours small numbers by less than one part in 2^40 for the delays it is used for.
pub(crate) fn draw(env: &dyn Env, most: u64) -> u64 {
    most.checked_add(1).map_or_else(|| env.random(), |bound| env.random() % bound)
}
