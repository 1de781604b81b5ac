//! The seam to the world: clocks, random numbers, connections and tasks reach the client through
//! [`Env`] and in no other way.

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

/// A moment of a clock that never steps and stands still while the machine is suspended
/// (`CLOCK_MONOTONIC`). Time-outs are measured with it. The origin is arbitrary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub Duration);

/// An instant of a clock that never steps and continues while the machine is suspended
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
            /// Saturates: a moment too far to write down is as good as never.
            fn add(self, more: Duration) -> Self {
                Self(self.0.saturating_add(more))
            }
        }
        impl Sub<$name> for $name {
            type Output = Duration;
            /// The time from `earlier` to `self`, zero when `earlier` is the later one.
            fn sub(self, earlier: Self) -> Duration {
                self.0.saturating_sub(earlier.0)
            }
        }
    };
}
moment!(Monotonic);
moment!(Boottime);
moment!(Wall);

/// A two-way stream of bytes.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to a server, as [`Env::dial`] returns it.
pub type BoxStream = Box<dyn Stream>;

/// The world as the client sees it.
///
/// [`TokioEnv`] is the real one and the default, so that most users never meet this trait. A
/// simulator implements it to own every clock, every random draw, every packet and every task of
/// the client.
pub trait Env: Send + Sync + 'static {
    /// The monotonic clock, for time-outs.
    fn now(&self) -> Monotonic;
    /// The clock that continues during suspend, for leases.
    fn boottime(&self) -> Boottime;
    /// The wall clock.
    fn wall(&self) -> Wall;
    /// Completes when [`Env::now`] has reached `deadline`.
    fn sleep_until(&self, deadline: Monotonic) -> BoxFuture<'static, ()>;
    /// 64 random bits. They name owners and requests, so they must not repeat between processes.
    fn random(&self) -> u64;
    /// Opens a connection. The client limits the time itself.
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<BoxStream>>;
    /// Opens a connection to a Unix socket. The default is an error, as a world may have none.
    fn dial_unix(&self, _path: &Path) -> BoxFuture<'static, io::Result<BoxStream>> {
        let none = io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets here");
        Box::pin(std::future::ready(Err(none)))
    }
    /// Runs a task to its end, independently of the caller.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// The real world, on a tokio runtime.
///
/// A copy of the process's memory (after a fork, or in a snapshot of a machine that is started
/// twice) draws the same random numbers for a while, and so names owners alike: make the client
/// after that.
#[derive(Debug, Clone)]
pub struct TokioEnv {
    // Kept, because a guard may be dropped outside of the runtime and must still be able to release
    // its lock.
    runtime: tokio::runtime::Handle,
    drawn: Arc<Mutex<Drawn>>,
}

/// Random numbers that no one has been given yet. A lock takes two, and a system call for each
/// would be a twentieth of its cost.
#[derive(Default)]
struct Drawn(Vec<u64>);

impl Drawn {
    /// How many are drawn at once.
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
        // The numbers are not shown: owners will be named by them.
        f.write_str("Drawn")
    }
}

impl TokioEnv {
    /// The runtime that the caller runs on.
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
// Darwin's CLOCK_MONOTONIC continues during sleep; elsewhere it is the best there is.
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

/// The outcome of `work`, or `None` when `limit` comes first. Work that is done at once costs no
/// timer.
///
/// The caller pins the work: a future that is moved into an async function takes its room there
/// twice, so that four such functions within each other would need sixteen times the room.
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

/// A number drawn evenly from `0..=most`.
///
/// The modulus favours small numbers by less than one part in 2^40 for the delays it is used for.
pub(crate) fn draw(env: &dyn Env, most: u64) -> u64 {
    most.checked_add(1).map_or_else(|| env.random(), |bound| env.random() % bound)
}
