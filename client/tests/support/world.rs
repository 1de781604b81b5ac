//! The real world, but for what a test changes about it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Boottime, BoxFuture, BoxStream, Env, Monotonic, TokioEnv, Wall};

/// The real world on a machine that can be said to have been suspended, or to have another date.
pub(crate) struct World {
    real: TokioEnv,
    /// What [`Env::boottime`] and [`Env::wall`] have gone on and [`Env::now`] has not.
    suspended: Mutex<Duration>,
    /// The date, where that stands still.
    date: Option<Wall>,
    largest_task: AtomicUsize,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        Self::dated(None)
    }

    /// A world in which it is always this late.
    pub(crate) fn at(date: Wall) -> Arc<Self> {
        Self::dated(Some(date))
    }

    fn dated(date: Option<Wall>) -> Arc<Self> {
        let real = TokioEnv::current().unwrap();
        Arc::new(Self { real, suspended: Mutex::default(), date, largest_task: AtomicUsize::new(0) })
    }

    pub(crate) fn suspend(&self, time: Duration) {
        *self.suspended.lock().unwrap() += time;
    }

    /// How many bytes the largest task took that was spawned since the last call.
    pub(crate) fn largest_task(&self) -> usize {
        self.largest_task.swap(0, Ordering::Relaxed)
    }
}

impl Env for World {
    fn now(&self) -> Monotonic {
        self.real.now()
    }

    fn boottime(&self) -> Boottime {
        self.real.boottime() + *self.suspended.lock().unwrap()
    }

    fn wall(&self) -> Wall {
        self.date.unwrap_or_else(|| self.real.wall() + *self.suspended.lock().unwrap())
    }

    fn sleep_until(&self, deadline: Monotonic) -> BoxFuture<'static, ()> {
        self.real.sleep_until(deadline)
    }

    fn random(&self) -> u64 {
        self.real.random()
    }

    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<BoxStream>> {
        self.real.dial(host, port)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.largest_task.fetch_max(size_of_val(&*task), Ordering::Relaxed);
        self.real.spawn(task);
    }
}
