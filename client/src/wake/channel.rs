//! One channel: how many wait for it, and waking them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore};

use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::work::Trouble;

/// Which waiters a message wakes: as many as can get what it announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// One waiter.
    One,
    /// All waiters.
    All,
    /// As many waiters as there are permits; all of them when one waits for several permits.
    UpTo(usize),
}

/// A channel, and what its messages mean to the waiters of one kind of object.
pub(crate) struct Wakes {
    pub(crate) channel: String,
    pub(crate) policy: fn(&[u8]) -> Wake,
    /// A grant leaves nothing to another waiter. Of permits and read holds it may, and messages
    /// that come at once are as one.
    pub(crate) exclusive: bool,
    /// A message reaches waiters of several clients, of which one can get what it announces: they
    /// take turns.
    pub(crate) in_turns: bool,
}

pub(super) struct Channel {
    policy: fn(&[u8]) -> Wake,
    waiters: AtomicUsize,
    /// The waiters that want several permits.
    greedy: AtomicUsize,
    /// A permit for each waiter that is to look. One that comes while no waiter sleeps is kept.
    looks: Semaphore,
    pub(super) all: Notify,
    /// Counts the times that all waiters were woken.
    epoch: AtomicU64,
    /// How many messages came since this client had the lock, or began to listen.
    passed: AtomicU32,
    /// The waiters that were woken and wait for their turn.
    due: AtomicUsize,
    /// Notifies these of the next message.
    next: Notify,
    confirmed: AtomicBool,
    /// Why there is no subscription yet.
    pub(super) trouble: Trouble,
    /// Why the server does not let this client listen.
    refusal: Mutex<Option<Error>>,
    /// Wakes the waiters for the confirmation, in the order of their arrival; a watch channel would
    /// draw one.
    confirming: Notify,
}

/// A waiter that was woken and waits for its turn.
pub(super) struct Due<'c>(&'c Channel);

impl Due<'_> {
    /// The next message.
    pub(super) fn next(&self) -> Notified<'_> {
        self.0.next.notified()
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        self.0.due.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Channel {
    pub(super) fn new(policy: fn(&[u8]) -> Wake) -> Self {
        Self {
            policy,
            waiters: AtomicUsize::new(0),
            greedy: AtomicUsize::new(0),
            looks: Semaphore::new(0),
            all: Notify::new(),
            epoch: AtomicU64::new(0),
            passed: AtomicU32::new(0),
            due: AtomicUsize::new(0),
            next: Notify::new(),
            confirmed: AtomicBool::new(false),
            trouble: Trouble::default(),
            refusal: Mutex::default(),
            confirming: Notify::new(),
        }
    }

    pub(super) fn join(&self, wants_several: bool) {
        self.greedy.fetch_add(usize::from(wants_several), Ordering::AcqRel);
        self.waiters.fetch_add(1, Ordering::AcqRel);
    }

    /// How many are left.
    pub(super) fn leave(&self, wanted_several: bool) -> usize {
        self.greedy.fetch_sub(usize::from(wanted_several), Ordering::AcqRel);
        self.waiters.fetch_sub(1, Ordering::AcqRel) - 1
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(super) fn confirm(&self) {
        self.confirmed.store(true, Ordering::Release);
        self.confirming.notify_waiters();
    }

    /// There will be no subscription: all waiters get the error.
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

    /// A message came.
    pub(super) fn deliver(&self, message: &[u8]) {
        self.passed.fetch_add(1, Ordering::AcqRel);
        self.next.notify_waiters();
        self.wake((self.policy)(message));
    }

    /// How many messages came since this client had the lock, or began to listen.
    pub(super) fn passed(&self) -> u32 {
        self.passed.load(Ordering::Acquire)
    }

    /// This client has had the lock: others come first.
    pub(super) fn served(&self) {
        self.passed.store(0, Ordering::Release);
    }

    /// A waiter waits for its turn, as long as this is kept: the next message is for it as well.
    pub(super) fn due(&self) -> Due<'_> {
        self.due.fetch_add(1, Ordering::AcqRel);
        Due(self)
    }

    /// Wakes sleepers, or the next that want to sleep.
    pub(super) fn wake(&self, wake: Wake) {
        let waiters = self.waiters.load(Ordering::Acquire);
        let most = match wake {
            Wake::All => return self.wake_all(),
            Wake::One => 1,
            Wake::UpTo(1..) if self.greedy.load(Ordering::Acquire) > 0 => return self.wake_all(),
            Wake::UpTo(permits) => permits.min(waiters),
        };
        let woken = self.looks.available_permits() + self.due.load(Ordering::Acquire);
        self.looks.add_permits(most.saturating_sub(woken));
    }

    /// Completes when this waiter is to look.
    pub(super) async fn look(&self) {
        // It is never closed.
        if let Ok(permit) = self.looks.acquire().await {
            permit.forget();
        }
    }

    pub(super) fn wake_all(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.all.notify_waiters();
    }
}
