//! One waiter's subscription to a channel.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::channel::{Channel, Wake, Wakes};
use super::crowd::{Pace, delay};
use super::hub::Hub;
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, Result};
use crate::observer::WokenBy;
use crate::wire::Slot;

pub(crate) struct Subscription {
    env: Arc<dyn Env>,
    hub: Arc<Hub>,
    name: String,
    channel: Arc<Channel>,
    wants_several: bool,
    exclusive: bool,
    in_turns: bool,
    /// Set when a message was taken and the lock was not looked at since.
    owes_look: AtomicBool,
}

impl Subscription {
    /// Adds a waiter to a channel. After [`Subscription::confirmed`] no message is missed. With
    /// `wants_several` permits, a message may announce too few for this waiter but enough for
    /// another. `slot` is that of the keys whose scripts publish.
    pub(crate) fn to(hub: &Arc<Hub>, wakes: Wakes, slot: Slot, wants_several: bool) -> Self {
        let channel = hub.join(&wakes, slot, wants_several);
        let (env, hub, owes_look) = (hub.env.clone(), hub.clone(), AtomicBool::new(false));
        let Wakes { channel: name, exclusive, in_turns, .. } = wakes;
        Self { env, hub, name, channel, wants_several, exclusive, in_turns, owes_look }
    }

    /// Completes when the server has confirmed or refused the subscription.
    pub(crate) async fn confirmed(&self) -> Result<()> {
        self.channel.confirmed().await
    }

    /// Returns the error of the last attempt to connect, if there is no subscription yet.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.channel.trouble.last()
    }

    /// Returns the refusal if the server does not, or no longer, let this client listen.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.channel.refusal()
    }

    /// Returns the epoch. Read it before looking at the lock, and pass it to
    /// [`Subscription::wait`].
    pub(crate) fn epoch(&self) -> u64 {
        self.channel.epoch()
    }

    /// Records an attempt to get the lock: messages received before it need no further attempt.
    pub(crate) fn looked(&self) {
        self.owes_look.store(false, Ordering::Release);
    }

    /// Records that the lock was granted. Otherwise the next waiter would be woken to ask for a
    /// lock that this waiter has just taken. `round_trip` is the time that a request takes.
    pub(crate) fn granted(&self, round_trip: Duration) {
        if self.exclusive {
            self.looked();
        }
        let (passed, period) = self.channel.served(self.env.now());
        if self.in_turns {
            self.hub.granted(&self.name, passed, period.map(|period| Pace { period, round_trip }));
        }
    }

    /// Completes when it is the turn of a waiter that has not asked yet. Returns false immediately
    /// if the server refuses the subscription.
    pub(crate) async fn first_turn(&self, round_trip: Duration) -> bool {
        // Messages from now on are for this waiter.
        self.owes_look.store(true, Ordering::Release);
        if self.confirmed().await.is_err() {
            return false;
        }
        self.turn(round_trip).await;
        true
    }

    /// Completes when it is this client's turn among those that a message has woken. `round_trip`
    /// is the time that a request takes.
    async fn turn(&self, round_trip: Duration) {
        let due = self.channel.due();
        loop {
            let mut next = pin!(due.next());
            // Register for the notification before checking, or a message in between is lost.
            next.as_mut().enable();
            let place = self.hub.place(&self.name, self.channel.passed());
            let Some(delay) = delay(&*self.env, place, round_trip) else { return };
            if within(&*self.env, self.env.now() + delay, next).await.is_none() {
                return;
            }
        }
    }

    /// Sleeps until a message wakes this waiter and it is its turn, until all waiters were woken
    /// since `epoch`, or until `limit`. `round_trip` is the time that a request takes.
    pub(crate) async fn wait(&self, epoch: u64, limit: Monotonic, round_trip: Duration) -> WokenBy {
        let all = self.channel.all.notified();
        tokio::pin!(all);
        all.as_mut().enable();
        if self.epoch() != epoch {
            return WokenBy::Message;
        }
        let message = async {
            tokio::select! {
                biased;
                () = self.channel.look() => self.owes_look.store(true, Ordering::Release),
                () = all => {}
            }
        };
        match within(&*self.env, limit, pin!(message)).await {
            Some(()) => {
                if self.in_turns && self.owes_look.load(Ordering::Acquire) {
                    self.turn(round_trip).await;
                }
                WokenBy::Message
            }
            None => WokenBy::Timer,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.owes_look.load(Ordering::Acquire) {
            self.channel.wake(Wake::One);
        }
        self.hub.leave(&self.name, &self.channel, self.wants_several);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::config::Config;
    use crate::endpoint::Endpoint;
    use crate::env::TokioEnv;
    use crate::route::Router;

    /// Makes a hub of a client whose server does not exist. The tests deliver the messages.
    fn hub() -> Arc<Hub> {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let endpoints = vec![Endpoint::parse("redis://127.0.0.1:1").unwrap()];
        let config = Arc::new(Config { endpoints, ..Config::default() });
        Hub::new(env.clone(), config.clone(), Arc::new(Router::new(env, config)))
    }

    fn join(hub: &Arc<Hub>) -> Subscription {
        join_for(hub, false)
    }

    fn join_for(hub: &Arc<Hub>, wants_several: bool) -> Subscription {
        let policy = |message: &[u8]| match message {
            b"one" => Wake::One,
            b"all" => Wake::All,
            number => Wake::UpTo(std::str::from_utf8(number).unwrap().parse().unwrap()),
        };
        let wakes =
            Wakes { channel: "c".to_owned(), policy, exclusive: !wants_several, in_turns: !wants_several };
        Subscription::to(hub, wakes, Slot(0), wants_several)
    }

    async fn wait(of: &Subscription, epoch: u64) -> WokenBy {
        of.wait(epoch, of.env.now() + Duration::from_millis(50), Duration::ZERO).await
    }

    /// A message goes to one of two waiters, which gives up before it has looked: the other one is
    /// woken.
    #[tokio::test]
    async fn a_waiter_that_gives_up_passes_the_message_on() {
        let hub = hub();
        for (looked, next) in [(false, WokenBy::Message), (true, WokenBy::Timer)] {
            let (first, second) = (join(&hub), join(&hub));
            first.channel.deliver(b"one");
            assert_eq!(wait(&first, first.epoch()).await, WokenBy::Message);
            if looked {
                first.looked();
            }
            drop(first);
            assert_eq!(wait(&second, second.epoch()).await, next, "looked: {looked}");
        }
    }

    /// A message goes to one of two waiters, which is granted the lock. After an exclusive grant
    /// nothing is left for the other one, so waking it would waste a request. After a grant of
    /// permits something may be left, because messages may have merged.
    #[tokio::test]
    async fn a_waiter_that_is_granted_an_exclusive_lock_wakes_no_other() {
        let hub = hub();
        for (wants_several, next) in [(false, WokenBy::Timer), (true, WokenBy::Message)] {
            let (first, second) = (join_for(&hub, wants_several), join_for(&hub, wants_several));
            first.channel.deliver(b"one");
            assert_eq!(wait(&first, first.epoch()).await, WokenBy::Message);
            first.granted(Duration::ZERO);
            drop(first);
            assert_eq!(wait(&second, second.epoch()).await, next, "of permits: {wants_several}");
        }
    }

    /// All waiters are woken after this one has looked at the lock and before it sleeps: it does
    /// not sleep.
    #[tokio::test]
    async fn a_wake_all_between_the_look_and_the_sleep_is_not_missed() {
        let waiter = join(&hub());
        let epoch = waiter.epoch();
        waiter.channel.deliver(b"all");
        assert_eq!(wait(&waiter, epoch).await, WokenBy::Message);
        assert_eq!(wait(&waiter, waiter.epoch()).await, WokenBy::Timer);
    }

    /// Semaphores publish a number of permits: as many waiters look, whether they are asleep or
    /// about to sleep.
    #[tokio::test]
    async fn a_number_of_permits_wakes_as_many_waiters() {
        for (permits, looks) in [("0", 0), ("1", 1), ("2", 2), ("3", 3), ("7", 3)] {
            for asleep in [false, true] {
                let hub = hub();
                let waiters = [join(&hub), join(&hub), join(&hub)];
                let waits = futures_util::future::join_all(waiters.iter().map(|of| wait(of, of.epoch())));
                let mut waits = std::pin::pin!(waits);
                if asleep {
                    assert!((&mut waits).now_or_never().is_none());
                }
                waiters[0].channel.deliver(permits.as_bytes());
                let woken = waits.await.into_iter().filter(|by| *by == WokenBy::Message).count();
                assert_eq!(woken, looks, "{permits} permits, asleep: {asleep}");
            }
        }
    }

    /// The waiter for two permits came first. A message of one permit is too little for it, but
    /// enough for the next waiter.
    #[tokio::test]
    async fn a_permit_too_few_for_the_first_waiter_wakes_the_next() {
        let hub = hub();
        let (first, next) = (join_for(&hub, true), join(&hub));
        first.channel.deliver(b"1");
        let (first_by, next_by) = futures_util::future::join(wait(&first, 0), wait(&next, 0)).await;
        assert_eq!((first_by, next_by), (WokenBy::Message, WokenBy::Message));
        // Without the waiter for two permits, one permit wakes one waiter again.
        drop(first);
        let other = join(&hub);
        next.channel.deliver(b"1");
        let waits = futures_util::future::join(wait(&next, next.epoch()), wait(&other, other.epoch()));
        assert_eq!(waits.await, (WokenBy::Message, WokenBy::Timer));
    }

    /// Longer than any test: a waiter gets its turn by messages alone.
    const SLOW: Duration = Duration::from_secs(3600);

    /// This client's release has shown three other waiting clients, so it lets three messages pass.
    /// Its other waiters are not woken in place of the one that waits for its turn.
    #[tokio::test]
    async fn a_waiter_lets_those_pass_that_come_first() {
        let hub = hub();
        hub.released("c", 4, hub.listening("c"));
        let (first, second) = (join(&hub), join(&hub));
        let limit = first.env.now() + SLOW;
        let mut waits = pin!(first.wait(first.epoch(), limit, SLOW));
        let mut behind = pin!(second.wait(second.epoch(), limit, SLOW));
        for passed in 1..=3 {
            first.channel.deliver(b"one");
            assert!(waits.as_mut().now_or_never().is_none(), "{passed}");
            assert!(behind.as_mut().now_or_never().is_none(), "{passed}");
        }
        first.channel.deliver(b"one");
        assert_eq!(waits.now_or_never(), Some(WokenBy::Message));
        // It is granted the lock, so other clients come first again.
        first.granted(Duration::ZERO);
        first.channel.deliver(b"one");
        assert!(behind.as_mut().now_or_never().is_none());
    }

    /// A waiter that gives up before its turn passes the message on.
    #[tokio::test]
    async fn a_waiter_that_gives_up_before_its_turn_passes_the_message_on() {
        let hub = hub();
        hub.released("c", 2, hub.listening("c"));
        let (first, second) = (join(&hub), join(&hub));
        first.channel.deliver(b"one");
        assert!(first.wait(first.epoch(), first.env.now() + SLOW, SLOW).now_or_never().is_none());
        drop(first);
        second.channel.deliver(b"one");
        let woken = second.wait(second.epoch(), second.env.now() + SLOW, SLOW).now_or_never();
        assert_eq!(woken, Some(WokenBy::Message), "two messages have passed");
    }

    /// Two others wait, so two messages are for them. The server has to confirm the subscription
    /// first, or no message would be counted.
    #[tokio::test]
    async fn a_first_turn_comes_once_the_others_have_had_theirs() {
        let hub = hub();
        hub.released("c", 3, hub.listening("c"));
        let waiter = join(&hub);
        let mut turn = pin!(waiter.first_turn(SLOW));
        assert_eq!(turn.as_mut().now_or_never(), None, "the server has not confirmed it");
        waiter.channel.confirm();
        for passed in 0..=2 {
            assert_eq!(turn.as_mut().now_or_never(), None, "{passed} messages");
            waiter.channel.deliver(b"one");
        }
        assert_eq!(turn.now_or_never(), Some(true));
    }

    #[tokio::test]
    async fn there_is_no_turn_without_a_subscription() {
        let waiter = join(&hub());
        waiter.channel.refuse(&Error::shutdown());
        assert_eq!(waiter.first_turn(SLOW).now_or_never(), Some(false));
        assert!(waiter.refusal().is_some());
    }

    /// A waiter that gives up in its first turn passes on the message that it may have taken,
    /// unless it has looked at the lock.
    #[tokio::test]
    async fn a_waiter_that_gives_up_in_its_first_turn_wakes_the_next() {
        for (looked, next) in [(false, WokenBy::Message), (true, WokenBy::Timer)] {
            let hub = hub();
            let (first, second) = (join(&hub), join(&hub));
            first.channel.confirm();
            assert_eq!(first.first_turn(SLOW).now_or_never(), Some(true));
            if looked {
                first.looked();
            }
            drop(first);
            assert_eq!(wait(&second, second.epoch()).await, next, "looked: {looked}");
        }
    }

    /// A new request of a client that has waiters queues behind them, and does not count messages
    /// in their place.
    #[tokio::test]
    async fn a_client_that_has_waiters_is_not_held_back() {
        let hub = hub();
        hub.granted("c", 1, Some(Pace { period: SLOW, round_trip: SLOW }));
        hub.released("c", 4, hub.listening("c"));
        assert!(hub.held_back("c").is_some());
        let waiter = join(&hub);
        assert_eq!(hub.held_back("c"), None);
        drop(waiter);
        assert!(hub.held_back("c").is_some());
    }

    /// A client that knows of no others asks immediately. So does a client of a kind without turns,
    /// whose message serves one waiter or a number of them.
    #[tokio::test]
    async fn who_takes_no_turns_asks_at_once() {
        for (released, in_turns) in [(None, true), (Some(1), true), (Some(9), false)] {
            let hub = hub();
            if let Some(reached) = released {
                hub.released("c", reached, hub.listening("c"));
            }
            let waiter = join_for(&hub, !in_turns);
            let epoch = waiter.epoch();
            waiter.channel.deliver(b"1");
            let woken = waiter.wait(epoch, waiter.env.now() + SLOW, SLOW).now_or_never();
            assert_eq!(woken, Some(WokenBy::Message), "{released:?} {in_turns}");
        }
    }
}
