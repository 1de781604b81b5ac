//! The faster multi-lock, Redisson's `getMultiLock(group, values)`: locks several values of one
//! group, all or none, in one hash and one round trip.

use std::time::Duration;

use redis::{Cmd, Value};

use super::reentrant::read_acquired;
use crate::attempt::{Answer, Ask, Attempt, ForceRelease, Found, Lease, Taken, Unlock, remaining};
use crate::client::Client;
use crate::config::millis;
use crate::error::{Error, Result};
use crate::hold::{Known, Parts, Told};
use crate::limits::VALUES;
use crate::lock::Lock;
use crate::renew::{Name, RenewalScript, read_flags};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::{Wake, Wakes};
use crate::wire::{group_field, lock_channel, unlock_latch};

script!(ACQUIRE, "group.lua", "acquire.lua");
script!(RELEASE, "group.lua", "release.lua");
script!(RELEASE_WITHOUT_LATCH, "../without_latch.lua", "group.lua", "release.lua");
script!(RENEW, "group.lua", "renew.lua");
script!(LEVELS, "group.lua", "levels.lua");
script!(LEFT, "group.lua", "left.lua");
script!(FORCE_RELEASE, "group.lua", "force_release.lua");

impl Client {
    /// Returns a handle on a lock on several values of a group, all or none, in one hash and one
    /// round trip. Use it for objects that are locked together, such as the rows that one
    /// transaction changes. Two locks of one group exclude each other if they have a value in
    /// common.
    ///
    /// A value is a byte string, compared as it is. Redisson encodes values with the codec of its
    /// configuration: with its `StringCodec` text is the same for both, and with another codec pass
    /// the bytes that it produces. Redis stores only a hash of each value. A duplicate counts once.
    /// At most 1,000 values are allowed.
    ///
    /// The handle has the calls of every lock, with these meanings: it is
    /// [locked](crate::Handle::is_locked) if any of the values is held; an owner's [hold
    /// count](crate::Handle::hold_count) is the least of its levels over the values; the
    /// [remaining](crate::Handle::remaining) lease lasts until the last value is over; and a
    /// [forced release](crate::Handle::force_release) frees these values and no others. A guard is
    /// lost as soon as one of its values is.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let transfer = client.faster_multi_lock("accounts", ["alice", "bob"]);
    /// let guard = transfer.acquire().await?; // renewed until it is released
    /// assert!(client.faster_multi_lock("accounts", ["bob", "carol"]).try_acquire().await?.is_none());
    /// let other = client.faster_multi_lock("accounts", ["carol"]).try_acquire().lease(Duration::from_secs(10)).await?;
    /// assert!(other.is_some());
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Clocks
    ///
    /// This client decides by the server's clock if a value is still held. Each Redisson client
    /// decides by its own clock, and writes deadlines by it. So for this client a value that
    /// Redisson took ends earlier or later by the error of that clock. A Redisson client whose
    /// clock is ahead takes values of this client that have not ended; only synchronized clocks
    /// prevent that. The watchdog notices it and the guard is lost, while a Redisson owner would
    /// not be notified.
    ///
    /// # Releases
    ///
    /// If some of its values were lost, a release releases the others and returns an error:
    /// [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld). The server decides that before it changes
    /// anything, and remembers it. So a retry does not take another level, as it does in Redisson.
    ///
    /// # What the user of the server must be allowed to do
    ///
    /// The crate documentation [lists the
    /// rights](crate#what-the-user-of-the-server-must-be-allowed-to-do). A [plain
    /// lock](Client::lock) with the name of the group uses the same key, and must not be used
    /// beside it.
    pub fn faster_multi_lock<V: AsRef<[u8]>>(
        &self,
        group: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Lock {
        let values = Parts::several(values.into_iter().map(|value| group_field(value.as_ref())));
        Lock::new(self.session.clone(), FasterMulti { values }, group)
    }
}

/// The values that are locked together, by their fields in the group's hash.
struct FasterMulti {
    values: Parts,
}

impl FasterMulti {
    fn with_values(&self, call: Call) -> Call {
        self.values.iter().fold(call, |call, value| call.arg(value))
    }

    fn levels(&self, key: &str, owner: &str) -> Cmd {
        // Sent with its text: the query is rare, and a restarted server does not know the script.
        self.with_values(LEVELS.call([key]).arg(owner)).eval()
    }
}

/// Reads the levels of each value, and the time until the first value is over.
fn read_levels(reply: &Value) -> Result<(Vec<u64>, Duration)> {
    let unexpected = || Error::unexpected(reply);
    let mut numbers: Vec<u64> = redis::from_redis_value(reply.clone()).map_err(|_| unexpected())?;
    let left = numbers.pop().ok_or_else(unexpected)?;
    Ok((numbers, Duration::from_millis(left)))
}

impl Attempt for FasterMulti {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        self.with_values(ACQUIRE.call([ask.key]).arg(ask.lease_ms).arg(ask.owner))
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        read_acquired(reply)
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        // The message does not name the free values, and waiters want different ones.
        Some(Wakes { channel: lock_channel(key), policy: |_| Wake::All, exclusive: false, in_turns: false })
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        vec![self.levels(ask.key, ask.owner)]
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        let [reply] = answers else { return Err(Error::unexpected(&Value::Nil)) };
        let (levels, left) = read_levels(reply)?;
        let told = known.told(&levels, left).ok_or_else(|| Error::unexpected(reply))?;
        Ok(told.map(|left| Found { got: (), left }))
    }
}

impl Lease for FasterMulti {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        static GROUPS: RenewalScript = RenewalScript { name: "groups", call: renew, read: read_flags };
        Some(&GROUPS)
    }

    fn parts(&self) -> Parts {
        self.values.clone()
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let keys =
            [unlock.key.to_owned(), lock_channel(unlock.key), unlock_latch(unlock.key, unlock.request)];
        let call = RELEASE
            .call(keys.into_iter().chain(unlock.spent.iter().cloned()))
            .arg(0)
            .arg(unlock.owner)
            .arg(unlock.publish)
            .arg(unlock.latch_ms);
        self.with_values(call)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::FASTER_MULTI
    }
}

fn renew(lease: Duration, names: &[Name]) -> Call {
    let call = RENEW.call(names.iter().map(|name| &*name.key)).arg(millis(lease));
    names.iter().fold(call, |call, Name { owner, parts, .. }| {
        let call = call.arg(owner).arg(parts.iter().len());
        parts.iter().fold(call, |call, value| call.arg(value))
    })
}

impl ForceRelease for FasterMulti {
    fn check(&self) -> Result<()> {
        let (values, most) = (self.values.iter().len(), VALUES.most);
        if VALUES.takes(values) {
            return Ok(());
        }
        Err(Error::config(format!("from 1 to {most} values can be locked together, not {values}")))
    }

    fn force_release(&self, key: &str, _now_ms: u64, publish: &str) -> Call {
        let call = FORCE_RELEASE.call([key.to_owned(), lock_channel(key)]).arg(0).arg(publish);
        self.with_values(call)
    }

    fn look(&self, key: &str) -> Option<Call> {
        Some(self.with_values(LEFT.call([key])))
    }

    fn read_look(&self, reply: &Value) -> Result<Taken> {
        let Value::Int(left) = reply else { return Err(Error::unexpected(reply)) };
        let left = remaining(*left);
        Ok(Taken { is_locked: left.is_some(), is_forcible: left.is_some() })
    }

    fn ask_left(&self, key: &str) -> Cmd {
        self.with_values(LEFT.call([key])).eval()
    }

    fn ask_levels(&self, key: &str, owner: &str) -> Cmd {
        self.levels(key, owner)
    }

    fn read_levels(&self, reply: &Value) -> Result<u64> {
        let (levels, _) = read_levels(reply)?;
        Ok(levels.into_iter().min().unwrap_or(0))
    }
}
