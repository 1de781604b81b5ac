//! The plain lock, Redisson's `RLock`: the first request gets it, and its owner may acquire it
//! again.

use redis::{Cmd, Value};

use crate::attempt::{
    Answer, Ask, Attempt, ForceRelease, Found, Lease, Unlock, found_in_hash, probe_hash, sleep_for,
};
use crate::client::Client;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::{Known, Told};
use crate::lock::Lock;
use crate::renew::{HASHES, RenewalScript};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::{Wake, Wakes};
use crate::wire::{lock_channel, unlock_latch};

script!(ACQUIRE, "acquire.lua");
script!(RELEASE, "release.lua");
script!(pub(super) RELEASE_WITHOUT_LATCH, "../without_latch.lua", "release.lua");
script!(FORCE_RELEASE, "force_release.lua");

impl Client {
    /// Returns a handle on a lock that its owner may acquire several times. After its release the
    /// first request gets it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let lock = client.lock("stock");
    /// if let Some(guard) = lock.try_acquire_for(Duration::from_secs(2)).lease(Duration::from_secs(10)).await? {
    ///     // at most 10 s of work
    ///     guard.release().await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.session.clone(), Plain { nests: true }, name)
    }
}

/// The plain kind of lock.
pub(super) struct Plain {
    /// True if its owner may acquire it again.
    pub(super) nests: bool,
}

impl Attempt for Plain {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        let call = ACQUIRE.call([ask.key]).arg(ask.lease_ms).arg(ask.owner);
        if self.nests { call } else { call.arg(REFUSAL) }
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        read_acquired(reply)
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        Some(Wakes { channel: lock_channel(key), policy: wakes, exclusive: true, in_turns: true })
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        probe_hash(ask)
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        Ok(found_in_hash(answers, known)?.map(|left| Found { got: (), left }))
    }
}

impl Lease for Plain {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        Some(&HASHES)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        release(unlock)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::LOCK
    }

    fn counted(&self, key: &str) -> Option<String> {
        Some(lock_channel(key))
    }
}

impl ForceRelease for Plain {
    fn force_release(&self, key: &str, _now_ms: u64, publish: &str) -> Call {
        force_release(key, publish)
    }
}

/// The reply with which the acquire scripts of non-reentrant locks refuse their own holder.
pub(super) const REFUSAL: &str = "NON_REENTRANT_REACQUIRE";

/// Reads the reply of an acquire script whose grant carries only the lock.
pub(super) fn read_acquired(reply: &Value) -> Result<Answer<()>> {
    match reply {
        Value::Nil => Ok(Answer::Got(())),
        Value::Int(left) => Ok(Answer::Busy(sleep_for(*left))),
        Value::SimpleString(status) if status == REFUSAL => Err(Error::definite(ErrorKind::AlreadyHeld)),
        other => Err(Error::unexpected(other)),
    }
}

/// Decodes a message on a lock's channel, in Redisson's format: `1` wakes all waiters because
/// several may get the lock; any other message wakes one.
pub(super) fn wakes(message: &[u8]) -> Wake {
    if message == b"1" { Wake::All } else { Wake::One }
}

/// Writes the release of a lock that is a hash with one channel.
pub(super) fn release(unlock: &Unlock<'_>) -> Call {
    let keys = [unlock.key.to_owned(), lock_channel(unlock.key), unlock_latch(unlock.key, unlock.request)];
    RELEASE
        .call(keys.into_iter().chain(unlock.spent.iter().cloned()))
        .arg(0)
        .arg(unlock.owner)
        .arg(unlock.publish)
        .arg(unlock.latch_ms)
}

/// Writes the forced release of a lock that is a hash with one channel.
pub(super) fn force_release(key: &str, publish: &str) -> Call {
    FORCE_RELEASE.call([key.to_owned(), lock_channel(key)]).arg(0).arg(publish)
}
