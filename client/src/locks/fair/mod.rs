//! The fair lock, Redisson's `RFairLock`: waiters stand in a queue, and the lock goes to its head.
//!
//! Each place in the queue has a deadline by its client's wall clock, its own wait after that of the place before it; when
//! it has passed at the head, the waiter counts as dead and is swept out. The head that asks again is alive: its
//! deadline is set anew, and those behind it keep their distances. That suffices for all, because
//!
//! * each queued waiter asks again within half of its wait ([`Protocol::queues`]), and
//! * whoever becomes the head has its own wait left at least: a head that is granted the lock or leaves brings the others
//!   nearer by its wait, and by no more than it had left itself.
//!
//! Where Redisson's scripts differ: they never set a deadline anew, so that a live waiter loses its place when the holder
//! works for longer than its lease and the wait; a place without a deadline counts as dead at once, instead of
//! blocking the queue for ever; and to release a lock that is not held is an error also when nobody holds it. A waiter
//! of Redisson's behind one of ours keeps its place as long as ours does; as the head it loses it as among its own kind,
//! and whoever is right behind it may then lose its place, too.

use crate::client::Client;
use crate::lock::Lock;
use crate::protocol::{Ask, Leave, Protocol, Unlock};
use crate::script::{Call, script};
use crate::wire::{fair_deadlines, fair_queue, lock_channel, unlock_latch, waiter_channel};

script!(ACQUIRE, "sweep.lua", "shift.lua", "acquire.lua");
script!(TRY_ACQUIRE, "sweep.lua", "shift.lua", "try_acquire.lua");
script!(ABANDON, "abandon.lua");
script!(RELEASE, "sweep.lua", "release.lua");
script!(FORCE_RELEASE, "sweep.lua", "force_release.lua");

impl Client {
    /// A lock that is granted in the order in which it was asked for.
    ///
    /// A live waiter keeps its place by asking now and then, however long the holder works, as long as its clock is right.
    /// A waiter that dies keeps its place until its deadline: the time it was ready to wait, or the client's
    /// [`fair_wait_timeout`](crate::Builder::fair_wait_timeout), after those before it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let guard = client.fair_lock("printer").acquire().await?;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn fair_lock(&self, name: &str) -> Lock {
        Lock::new(self.session.clone(), &Fair, name)
    }
}

struct Fair;

impl Protocol for Fair {
    fn acquire(&self, ask: &Ask<'_>) -> Call {
        ACQUIRE
            .call([ask.lock.to_owned(), fair_queue(ask.lock), fair_deadlines(ask.lock)])
            .arg(ask.lease_ms)
            .arg(ask.owner)
            .arg(ask.wait_ms)
            .arg(ask.now_ms)
    }

    fn try_acquire(&self, ask: &Ask<'_>) -> Call {
        TRY_ACQUIRE
            .call([ask.lock.to_owned(), fair_queue(ask.lock), fair_deadlines(ask.lock)])
            .arg(ask.lease_ms)
            .arg(ask.owner)
            .arg(ask.now_ms)
            .arg(ask.wait_ms)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        RELEASE
            .call([
                unlock.lock.to_owned(),
                fair_queue(unlock.lock),
                fair_deadlines(unlock.lock),
                lock_channel(unlock.lock),
                unlock_latch(unlock.lock, unlock.request),
            ])
            .arg(0)
            .arg(unlock.remaining_ms)
            .arg(unlock.owner)
            .arg(unlock.now_ms)
            .arg(unlock.publish)
            .arg(unlock.latch_ms)
    }

    fn force_release(&self, lock: &str, now_ms: u64, publish: &str) -> Call {
        FORCE_RELEASE
            .call([lock.to_owned(), fair_queue(lock), fair_deadlines(lock), lock_channel(lock)])
            .arg(0)
            .arg(now_ms)
            .arg(publish)
    }

    fn queues(&self) -> bool {
        true
    }

    fn leave(&self, leave: &Leave<'_>) -> Option<Call> {
        let lock = leave.lock;
        let call = ABANDON
            .call([fair_queue(lock), fair_deadlines(lock), lock.to_owned(), lock_channel(lock)])
            .arg(leave.now_ms)
            .arg(0)
            .arg(leave.publish);
        Some(leave.waiters.iter().fold(call, |call, (owner, wait_ms)| call.arg(owner).arg(wait_ms)))
    }

    fn channel(&self, lock: &str, owner: &str) -> String {
        waiter_channel(lock, owner)
    }
}
