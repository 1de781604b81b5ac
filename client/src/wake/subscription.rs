//! One waiter's share of a channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::channel::Channel;
use super::hub::Hub;
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, Result};
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

    /// Completes when the server has confirmed the subscription, or refused it.
    pub(crate) async fn confirmed(&self) -> Result<()> {
        self.channel.confirmed().await
    }

    /// Why no message can come any more: the server lets this client not listen, or no longer.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.channel.refusal()
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Config, Endpoint};
    use crate::env::TokioEnv;
    use crate::route::Router;
    use crate::wake::Hubs;
    use crate::wire::Slot;

    /// Of a client whose server does not exist: what the server would say, the tests say.
    fn hub() -> Arc<Hub> {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let endpoints = vec![Endpoint::parse("redis://127.0.0.1:1").unwrap()];
        let config = Arc::new(Config { endpoints, ..Config::default() });
        Hubs::new(env.clone(), config.clone(), Arc::new(Router::new(env, config))).of(Slot(0))
    }

    async fn wait(of: &Subscription, epoch: u64) -> WokenBy {
        of.wait(epoch, of.env.now() + Duration::from_millis(50)).await
    }

    /// A release is announced to one of two waiters, which gives up before it has looked: the other one is woken.
    #[tokio::test]
    async fn a_waiter_that_gives_up_passes_the_message_on() {
        let hub = hub();
        for (looked, next) in [(false, WokenBy::Message), (true, WokenBy::Timer)] {
            let (first, second) = (Subscription::to(&hub, "c"), Subscription::to(&hub, "c"));
            first.channel.wake_one();
            assert_eq!(wait(&first, first.epoch()).await, WokenBy::Message);
            if looked {
                first.looked();
            }
            drop(first);
            assert_eq!(wait(&second, second.epoch()).await, next, "looked: {looked}");
        }
    }

    /// All are woken after this one has looked at the lock and before it sleeps: it does not sleep.
    #[tokio::test]
    async fn a_wake_all_between_the_look_and_the_sleep_is_not_missed() {
        let waiter = Subscription::to(&hub(), "c");
        let epoch = waiter.epoch();
        waiter.channel.wake_all();
        assert_eq!(wait(&waiter, epoch).await, WokenBy::Message);
        assert_eq!(wait(&waiter, waiter.epoch()).await, WokenBy::Timer);
    }
}
