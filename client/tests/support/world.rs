//! The real world with the changes of a test.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Boottime, BoxFuture, BoxStream, Env, Monotonic, TokioEnv, Wall};

/// The real world on a machine that a test can suspend, or set to another date.
pub(crate) struct World {
    real: TokioEnv,
    /// The time by which [`Env::boottime`] and [`Env::wall`] are ahead of [`Env::now`].
    suspended: Mutex<Duration>,
    /// The date, if it stands still.
    date: Option<Wall>,
    largest_task: AtomicUsize,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        Self::dated(None)
    }

    /// A world whose wall clock always shows `date`.
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

    /// The size in bytes of the largest task spawned since the previous call.
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
