//! The fair lock, Redisson's `RFairLock`: waiters queue, and the lock goes to the head of the
//! queue.
//!
//! Each place in the queue has a deadline by its client's wall clock: its own wait after the
//! deadline of the place before it. If the deadline of the head has passed, the waiter counts as
//! dead and is removed. A head that asks again is alive: its deadline is renewed, and the places
//! behind it keep their distances. That suffices for all waiters, because
//!
//! * each queued waiter asks again within half of its wait ([`Attempt::abandon`]), and
//! * a waiter that becomes the head has at least its own wait left: when a head is granted the lock
//!   or leaves, the other deadlines move forward by its wait, but by no more than it had left
//!   itself.
//!
//! A waiter that dies is removed one wait after it last asked. This holds even if several die
//! together, whose deadlines follow one another: each place has a second deadline, the time by
//! which its waiter must ask again, in a key that only these scripts use (`sweep.lua`).
//!
//! Differences from Redisson's scripts: Redisson never renews a deadline, so a live waiter loses
//! its place when the holder works for longer than its lease and the wait. A place without a
//! deadline counts as dead immediately, instead of blocking the queue forever. Releasing a lock
//! that is not held is an error even if the lock is free. A Redisson waiter behind one of ours
//! keeps its place as long as ours does. As the head it loses its place as it would among
//! Redisson's own, and the waiter right behind it may then lose its place, too.

use redis::{Cmd, Value};

use super::reentrant::{REFUSAL, read_acquired, wakes};
use crate::attempt::{
    Abandon, Answer, Ask, Attempt, ForceRelease, Found, Lease, Unlock, found_in_hash, probe_hash,
};
use crate::client::Client;
use crate::error::Result;
use crate::hold::{Known, Told};
use crate::lock::Lock;
use crate::renew::{HASHES, RenewalScript};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::Wakes;
use crate::wire::{fair_alive, fair_deadlines, fair_queue, lock_channel, unlock_latch, waiter_channel};

script!(ACQUIRE, "shift.lua", "sweep.lua", "acquire.lua");
script!(TRY_ACQUIRE, "shift.lua", "sweep.lua", "try_acquire.lua");
script!(ABANDON, "abandon.lua");
script!(RELEASE, "shift.lua", "sweep.lua", "release.lua");
script!(RELEASE_WITHOUT_LATCH, "../without_latch.lua", "shift.lua", "sweep.lua", "release.lua");
script!(FORCE_RELEASE, "shift.lua", "sweep.lua", "force_release.lua");

impl Client {
    /// Returns a handle on a lock that is granted in the order of the requests.
    ///
    /// A live waiter keeps its place by asking from time to time, however long the holder works, as
    /// long as its clock is right. A dead waiter keeps its place for some time after its last
    /// request and after the lease that it saw then: for the time that it was ready to wait, or the
    /// client's [`fair_wait_timeout`](crate::Builder::fair_wait_timeout). The same holds for
    /// several that die together. A dead Redisson waiter keeps its place for its own wait after
    /// those before it.
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
        Lock::new(self.session.clone(), Fair { nests: true }, name)
    }
}

/// The fair kind of lock.
pub(super) struct Fair {
    /// True if its owner may acquire it again.
    pub(super) nests: bool,
}

impl Attempt for Fair {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        let keys = [ask.key.to_owned(), fair_queue(ask.key), fair_deadlines(ask.key), fair_alive(ask.key)];
        let call = if ask.waits {
            ACQUIRE.call(keys).arg(ask.lease_ms).arg(ask.owner).arg(ask.wait_ms).arg(ask.now_ms)
        } else {
            TRY_ACQUIRE.call(keys).arg(ask.lease_ms).arg(ask.owner).arg(ask.now_ms).arg(ask.wait_ms)
        };
        if self.nests { call } else { call.arg(REFUSAL) }
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        read_acquired(reply)
    }

    fn wakes(&self, key: &str, owner: &str) -> Option<Wakes> {
        Some(Wakes { channel: waiter_channel(key, owner), policy: wakes, exclusive: true, in_turns: false })
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        probe_hash(ask)
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        Ok(found_in_hash(answers, known)?.map(|left| Found { got: (), left }))
    }

    fn abandon(&self) -> Option<Abandon> {
        Some(|leave| {
            let key = leave.key;
            let call = ABANDON
                .call([
                    fair_queue(key),
                    fair_deadlines(key),
                    key.to_owned(),
                    lock_channel(key),
                    fair_alive(key),
                ])
                .arg(leave.now_ms)
                .arg(0)
                .arg(leave.publish);
            leave.waiters.iter().fold(call, |call, (owner, wait_ms)| call.arg(owner).arg(wait_ms))
        })
    }
}

impl Lease for Fair {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        Some(&HASHES)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let keys = [
            unlock.key.to_owned(),
            fair_queue(unlock.key),
            fair_deadlines(unlock.key),
            lock_channel(unlock.key),
            fair_alive(unlock.key),
            unlock_latch(unlock.key, unlock.request),
        ];
        RELEASE
            .call(keys.into_iter().chain(unlock.spent.iter().cloned()))
            .arg(0)
            .arg(unlock.owner)
            .arg(unlock.now_ms)
            .arg(unlock.publish)
            .arg(unlock.latch_ms)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::FAIR
    }
}

impl ForceRelease for Fair {
    fn force_release(&self, key: &str, now_ms: u64, publish: &str) -> Call {
        FORCE_RELEASE
            .call([key.to_owned(), fair_queue(key), fair_deadlines(key), lock_channel(key), fair_alive(key)])
            .arg(0)
            .arg(now_ms)
            .arg(publish)
    }
}
