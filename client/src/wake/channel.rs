//! One channel: its waiters, and waking them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore};

use crate::env::Monotonic;
use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::work::Trouble;

/// The waiters that a message wakes: as many as can get what it announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    One,
    All,
    /// As many waiters as there are permits; all of them if any waits for several permits.
    UpTo(usize),
}

/// A channel, and the meaning of its messages for one kind of object.
pub(crate) struct Wakes {
    pub(crate) channel: String,
    pub(crate) policy: fn(&[u8]) -> Wake,
    /// True if a grant leaves nothing for another waiter. False for permits and read holds, where a
    /// grant may leave some, and messages that arrive together count as one.
    pub(crate) exclusive: bool,
    /// True if a message reaches waiters of several clients but only one of them can be granted:
    /// they take turns. Waiters of objects that can grant several ask at once, and the network and
    /// the machines decide who is first. A drawn delay would cost more than it gains: the timers of
    /// a real runtime tick in milliseconds, many times the length of a hand-off.
    pub(crate) in_turns: bool,
}

pub(super) struct Channel {
    policy: fn(&[u8]) -> Wake,
    waiters: AtomicUsize,
    /// The number of waiters that want several permits.
    greedy: AtomicUsize,
    /// Has a permit for each waiter that should look. A permit added while no waiter sleeps is
    /// kept.
    looks: Semaphore,
    pub(super) all: Notify,
    /// Counts the times that all waiters were woken.
    epoch: AtomicU64,
    /// The number of messages since this client had the lock, or since it began to listen.
    passed: AtomicU32,
    /// The time since which they are counted.
    since: Mutex<Monotonic>,
    /// The number of waiters that were woken and wait for their turn.
    due: AtomicUsize,
    /// Notifies the due waiters of the next message.
    next: Notify,
    confirmed: AtomicBool,
    /// The error for which there is no subscription yet.
    pub(super) trouble: Trouble,
    /// The error with which the server refused the subscription.
    refusal: Mutex<Option<Error>>,
    /// Wakes the waiters for the confirmation in the order of their arrival. A watch channel would
    /// pick the order at random.
    confirming: Notify,
}

/// A waiter that was woken and waits for its turn.
pub(super) struct Due<'c>(&'c Channel);

impl Due<'_> {
    /// Completes at the next message.
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
    pub(super) fn new(policy: fn(&[u8]) -> Wake, now: Monotonic) -> Self {
        Self {
            policy,
            waiters: AtomicUsize::new(0),
            greedy: AtomicUsize::new(0),
            looks: Semaphore::new(0),
            all: Notify::new(),
            epoch: AtomicU64::new(0),
            passed: AtomicU32::new(0),
            since: Mutex::new(now),
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

    /// Returns the number of remaining waiters.
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

    /// Reports the refused subscription to all waiters.
    pub(super) fn refuse(&self, error: &Error) {
        *locked(&self.refusal) = Some(error.clone());
        self.confirming.notify_waiters();
        self.wake_all();
    }

    pub(super) fn refusal(&self) -> Option<Error> {
        locked(&self.refusal).clone()
    }

    /// Completes when the subscription is confirmed or refused.
    pub(super) async fn confirmed(&self) -> Result<()> {
        // Register for the notification before checking, or a confirmation in between is lost.
        let mut confirming = std::pin::pin!(self.confirming.notified());
        confirming.as_mut().enable();
        if !self.confirmed.load(Ordering::Acquire) && self.refusal().is_none() {
            confirming.await;
        }
        self.refusal().map_or(Ok(()), Err)
    }

    /// Handles a message.
    pub(super) fn deliver(&self, message: &[u8]) {
        self.passed.fetch_add(1, Ordering::AcqRel);
        self.next.notify_waiters();
        self.wake((self.policy)(message));
    }

    /// Returns the number of messages since this client had the lock, or since it began to listen.
    pub(super) fn passed(&self) -> u32 {
        self.passed.load(Ordering::Acquire)
    }

    /// Records that this client has got the lock: other clients come first now. Returns the
    /// number of messages before, and the time from one to the next if there were any.
    pub(super) fn served(&self, now: Monotonic) -> (u32, Option<Duration>) {
        let passed = self.passed.swap(0, Ordering::AcqRel);
        let since = std::mem::replace(&mut *locked(&self.since), now);
        (passed, (now - since).checked_div(passed))
    }

    /// Registers a waiter that waits for its turn, until the guard is dropped. The next message is
    /// for it as well.
    pub(super) fn due(&self) -> Due<'_> {
        self.due.fetch_add(1, Ordering::AcqRel);
        Due(self)
    }

    /// Wakes sleeping waiters, or marks that the next ones to sleep should look.
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

    /// Completes when this waiter should look.
    pub(super) async fn look(&self) {
        // The semaphore is never closed.
        if let Ok(permit) = self.looks.acquire().await {
            permit.forget();
        }
    }

    pub(super) fn wake_all(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.all.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three messages in 30 ms until this client has the lock, none in the next 10 ms, and one in
    /// the next 20 ms.
    #[test]
    fn the_time_from_one_message_to_the_next_is_measured_from_grant_to_grant() {
        let ms = |ms| Monotonic(Duration::from_millis(ms));
        let channel = Channel::new(|_| Wake::One, ms(1_000));
        for (messages, at, period) in [
            (3, 1_030, Some(Duration::from_millis(10))),
            (0, 1_040, None),
            (1, 1_060, Some(Duration::from_millis(20))),
        ] {
            for _ in 0..messages {
                channel.deliver(b"0");
            }
            assert_eq!(channel.passed(), messages, "since the last grant");
            assert_eq!(channel.served(ms(at)), (messages, period), "at {at} ms");
        }
    }
}
