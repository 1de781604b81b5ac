//! One channel: how many wait for it, and waking them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::error::{Error, Result};
use crate::hold::locked;

pub(super) struct Channel {
    waiters: AtomicUsize,
    pub(super) one: Notify,
    pub(super) all: Notify,
    /// Counts the times that all waiters were woken.
    epoch: AtomicU64,
    confirmed: AtomicBool,
    /// Why the server does not let this client listen.
    refusal: Mutex<Option<Error>>,
    /// Wakes those who wait for the confirmation, in the order they came; a watch channel would draw one.
    confirming: Notify,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            waiters: AtomicUsize::new(0),
            one: Notify::new(),
            all: Notify::new(),
            epoch: AtomicU64::new(0),
            confirmed: AtomicBool::new(false),
            refusal: Mutex::default(),
            confirming: Notify::new(),
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
        self.confirmed.store(true, Ordering::Release);
        self.confirming.notify_waiters();
    }

    /// There will be no subscription: all waiters are told.
    pub(super) fn refuse(&self, error: &Error) {
        *locked(&self.refusal) = Some(error.clone());
        self.confirming.notify_waiters();
        self.wake_all();
    }

    pub(super) fn refusal(&self) -> Option<Error> {
        locked(&self.refusal).clone()
    }

    /// Completes when the subscription stands, or was refused.
    pub(super) async fn confirmed(&self) -> Result<()> {
        // In line before the look, so that a confirmation in between is not missed.
        let mut confirming = std::pin::pin!(self.confirming.notified());
        confirming.as_mut().enable();
        if !self.confirmed.load(Ordering::Acquire) && self.refusal().is_none() {
            confirming.await;
        }
        self.refusal().map_or(Ok(()), Err)
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
