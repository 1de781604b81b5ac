//! The fair lock, Redisson's `RFairLock`: waiters stand in a queue, and the lock goes to its head.
//!
//! Each place in the queue has a deadline by its client's wall clock; when that has passed, the waiter counts as dead
//! and is swept out. Where Redisson's scripts differ: a place without a deadline counts as dead at once, instead of
//! blocking the queue for ever, and to release a lock that is not held is an error also when nobody holds it.

use crate::client::Client;
use crate::lock::Lock;
use crate::names::{fair_deadlines, fair_queue, lock_channel, unlock_latch, waiter_channel};
use crate::protocol::{Ask, Protocol, Unlock};
use crate::script::{Call, script};

script!(ACQUIRE, "sweep.lua", "acquire.lua");
script!(TRY_ACQUIRE, "sweep.lua", "try_acquire.lua");
script!(ABANDON, "abandon.lua");
script!(RELEASE, "sweep.lua", "release.lua");
script!(FORCE_RELEASE, "sweep.lua", "force_release.lua");

impl Client {
    /// A lock that is granted in the order in which it was asked for.
    ///
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
            .arg("PUBLISH")
            .arg(unlock.latch_ms)
    }

    fn force_release(&self, lock: &str, now_ms: u64) -> Call {
        FORCE_RELEASE
            .call([lock.to_owned(), fair_queue(lock), fair_deadlines(lock), lock_channel(lock)])
            .arg(0)
            .arg(now_ms)
            .arg("PUBLISH")
    }

    fn abandon(&self, ask: &Ask<'_>) -> Option<Call> {
        let keys =
            [fair_queue(ask.lock), fair_deadlines(ask.lock), ask.lock.to_owned(), lock_channel(ask.lock)];
        Some(ABANDON.call(keys).arg(ask.owner).arg(ask.wait_ms).arg(0).arg("PUBLISH"))
    }

    fn channel(&self, lock: &str, owner: &str) -> String {
        waiter_channel(lock, owner)
    }
}
