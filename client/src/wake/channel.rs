//! One channel: how many wait for it, and waking them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

pub(super) struct Channel {
    waiters: AtomicUsize,
    pub(super) one: Notify,
    pub(super) all: Notify,
    /// Counts the times that all waiters were woken.
    epoch: AtomicU64,
    pub(super) confirmed: watch::Sender<bool>,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            waiters: AtomicUsize::new(0),
            one: Notify::new(),
            all: Notify::new(),
            epoch: AtomicU64::new(0),
            confirmed: watch::Sender::new(false),
        }
    }
}

impl Channel {
    pub(super) fn join(&self) {
        self.waiters.fetch_add(1, Ordering::AcqRel);
    }

    /// How many are left.
    pub(super) fn leave(&self) -> usize {
        self.waiters.fetch_sub(1, Ordering::AcqRel) - 1
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(super) fn confirm(&self) {
        self.confirmed.send_replace(true);
    }

    /// Wakes one sleeper, or the next that wants to sleep.
    pub(super) fn wake_one(&self) {
        self.one.notify_one();
    }

    pub(super) fn wake_all(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.all.notify_waiters();
    }
}
