//! One channel, and one waiter's share of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

use super::Hub;
use crate::env::{Env, Monotonic, within};
use crate::observer::WokenBy;

pub(super) struct Channel {
    waiters: AtomicUsize,
    one: Notify,
    all: Notify,
    /// Counts the times that all waiters were woken.
    epoch: AtomicU64,
    confirmed: watch::Sender<bool>,
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

/// A waiter's place at a channel.
pub(crate) struct Subscription {
    env: Arc<dyn Env>,
    hub: Arc<Hub>,
    name: String,
    channel: Arc<Channel>,
    /// A message was taken and the lock not looked at since.
    owes_look: AtomicBool,
}

impl Subscription {
    pub(super) fn new(env: Arc<dyn Env>, hub: Arc<Hub>, name: String, channel: Arc<Channel>) -> Self {
        Self { env, hub, name, channel, owes_look: AtomicBool::new(false) }
    }

    /// Completes when the server has confirmed the subscription.
    pub(crate) async fn confirmed(&self) {
        let mut confirmed = self.channel.confirmed.subscribe();
        // The sender lives as long as this subscription.
        let _ = confirmed.wait_for(|&confirmed| confirmed).await;
    }

    /// To be read before looking at the lock, and given to [`Subscription::wait`] after.
    pub(crate) fn epoch(&self) -> u64 {
        self.channel.epoch.load(Ordering::Acquire)
    }

    /// The lock was looked at: a message taken before has done its work.
    pub(crate) fn looked(&self) {
        self.owes_look.store(false, Ordering::Release);
    }

    /// Sleeps until a message comes that is meant for this waiter, everybody was woken since `epoch`, or `limit`.
    pub(crate) async fn wait(&self, epoch: u64, limit: Monotonic) -> WokenBy {
        let all = self.channel.all.notified();
        tokio::pin!(all);
        all.as_mut().enable();
        if self.epoch() != epoch {
            return WokenBy::Message;
        }
        let message = async {
            tokio::select! {
                biased;
                () = self.channel.one.notified() => self.owes_look.store(true, Ordering::Release),
                () = all => {}
            }
        };
        match within(&*self.env, limit, message).await {
            Some(()) => WokenBy::Message,
            None => WokenBy::Timer,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.owes_look.load(Ordering::Acquire) {
            self.channel.wake_one();
        }
        self.hub.leave(&self.name, &self.channel);
    }
}
