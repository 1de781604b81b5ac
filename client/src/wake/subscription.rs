//! One waiter's share of a channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::channel::Channel;
use super::hub::Hub;
use crate::env::{Env, Monotonic, within};
use crate::observer::WokenBy;

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
    /// Adds a waiter to the channel `name`. [`Subscription::confirmed`] tells when messages can no longer be missed.
    pub(crate) fn to(hub: &Arc<Hub>, name: &str) -> Self {
        let channel = hub.join(name);
        let (env, hub, name) = (hub.env.clone(), hub.clone(), name.to_owned());
        Self { env, hub, name, channel, owes_look: AtomicBool::new(false) }
    }

    /// Completes when the server has confirmed the subscription.
    pub(crate) async fn confirmed(&self) {
        self.channel.confirmed().await;
    }

    /// To be read before looking at the lock, and given to [`Subscription::wait`] after.
    pub(crate) fn epoch(&self) -> u64 {
        self.channel.epoch()
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
