//! The fair lock, Redisson's `RFairLock`: waiters stand in a queue, and the lock goes to its head.
//!
//! Each place in the queue has a deadline by its client's wall clock, its own wait after that of
//! the place before it; when it has passed at the head, the waiter counts as dead and is swept out.
//! The head that asks again is alive: its deadline is set anew, and those behind it keep their
//! distances. That suffices for all, because
//!
//! * each queued waiter asks again within half of its wait ([`Attempt::abandon`]), and
//! * a waiter that becomes the head has its own wait left at least: a head that is granted the lock
//!   or leaves brings the others nearer by its wait, and by no more than it had left itself.
//!
//! A waiter that dies is out a wait after it has asked for the last time, also if others die with
//! it, whose deadlines come one after another: each place has a second end, its waiter's next
//! question, in a key of these scripts' own (`sweep.lua`).
//!
//! Where Redisson's scripts differ: they never set a deadline anew, so that a live waiter loses its
//! place when the holder works for longer than its lease and the wait; a place without a deadline
//! counts as dead at once, instead of blocking the queue forever; and to release a lock that is not
//! held is an error also when it is free. A waiter of Redisson's behind one of ours keeps its place
//! as long as ours does; as the head it loses it as among its own kind, and the waiter right behind
//! it may then lose its place, too.

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
    /// A lock that is granted in the order in which it was asked for.
    ///
    /// A live waiter keeps its place by asking now and then, however long the holder works, as long
    /// as its clock is right. A waiter that dies keeps its place for the time that it was ready to
    /// wait, or the client's [`fair_wait_timeout`](crate::Builder::fair_wait_timeout), after it has
    /// asked for the last time and after the lease that it found then; so do several that die
    /// together. One of Redisson's keeps it for its own wait after those before it.
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

/// The lock that its waiters get in their order.
pub(super) struct Fair {
    /// Its owner may take it again.
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
