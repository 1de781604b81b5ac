//! The traits that a kind of lock on one master implements: how it is acquired, kept and released.
//! Pure: implementations write calls and read replies; other modules send them.

use std::time::Duration;

use redis::{Cmd, Value};

use crate::error::{Error, Result};
use crate::hold::{Known, Parts, Told};
use crate::renew::RenewalScript;
use crate::rights::Rights;
use crate::script::{Call, Script};
use crate::spin::SpinBackoff;
use crate::wake::Wakes;

/// The arguments of one request for an object.
pub(crate) struct Ask<'a> {
    pub(crate) key: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) lease_ms: u64,
    /// True if the caller waits after a refusal. If false, the owner must not be queued.
    pub(crate) waits: bool,
    /// The time in ms for which a queued waiter counts as alive.
    pub(crate) wait_ms: u64,
    /// This client's wall clock in ms.
    pub(crate) now_ms: u64,
    /// For kinds whose grants never expire: the time in ms for which the server remembers that it
    /// executed the request.
    pub(crate) memory_ms: u64,
    /// The command that publishes a message: `PUBLISH` or `SPUBLISH`.
    pub(crate) publish: &'a str,
}

/// The reply to an [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer<G> {
    Got(G),
    /// Another owner has it, or another waiter comes first.
    Busy(Sleep),
}

/// The time that a refused waiter may sleep if no message wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// The rest of the holder's lease. Zero if the lock is free, but it is another waiter's turn.
    Left(Duration),
    /// The key has no TTL.
    Unknown,
}

/// A grant that was found by a probe after the reply was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found<G> {
    pub(crate) got: G,
    pub(crate) left: Duration,
}

/// The arguments of a call that removes waiters from a queue.
pub(crate) struct Leave<'a> {
    pub(crate) key: &'a str,
    /// The owner field of each waiter, with the `wait_ms` of its requests.
    pub(crate) waiters: &'a [(&'a str, u64)],
    pub(crate) now_ms: u64,
    /// As [`Ask::publish`].
    pub(crate) publish: &'a str,
}

/// Writes the call that gives up places in a queue.
pub(crate) type Abandon = fn(&Leave<'_>) -> Call;

/// An object that a caller can request and wait for.
pub(crate) trait Attempt: Send + Sync + 'static {
    /// The value that a grant brings besides the object.
    type Got;

    /// Writes the call that takes the object. If the caller waits and the kind has a queue, a
    /// refused owner gets a place in it.
    fn call(&self, ask: &Ask<'_>) -> Call;

    /// Reads the reply to [`Attempt::call`].
    fn read(&self, reply: &Value) -> Result<Answer<Self::Got>>;

    /// Returns the channel whose messages may end the wait of `owner`. `None` for kinds that
    /// publish none; their waiters [spin](Attempt::spin_backoff).
    fn wakes(&self, key: &str, owner: &str) -> Option<Wakes>;

    /// Returns the backoff of kinds whose waiters poll.
    fn spin_backoff(&self) -> Option<SpinBackoff> {
        None
    }

    /// Returns true for kinds that do not nest and whose reply does not name the holder. The client
    /// then refuses an owner by the holds that it knows.
    fn refuses_holder(&self) -> bool {
        false
    }

    /// For kinds that publish a number of permits: returns true if this waiter wants more than one.
    /// A message may then be too little for it and enough for another.
    fn wants_several(&self) -> bool {
        false
    }

    /// Returns the queries that show, after a lost reply, if the request was executed.
    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd>;

    /// Reads the answers to [`Attempt::probe`]: the grant, if the request was executed. `known`
    /// holds the owner's levels as far as this client knows them, for each of the
    /// [parts](Lease::parts).
    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<Self::Got>>>;

    /// For kinds with a queue, whose waiters keep their place by asking again within their wait:
    /// returns the function that gives the place up.
    fn abandon(&self) -> Option<Abandon> {
        None
    }
}

/// The arguments of a call that releases one level of a hold.
pub(crate) struct Unlock<'a> {
    pub(crate) key: &'a str,
    pub(crate) owner: &'a str,
    /// The id of the request, the same in all retries of one unlock.
    pub(crate) request: &'a str,
    /// For kinds whose levels have keys of their own: the rest, in ms, of the longest lease among
    /// the remaining levels, when the request is written. The script never sets more than the
    /// deleted key had left.
    pub(crate) remaining_ms: u64,
    /// The time in ms for which the result is remembered for retries.
    pub(crate) latch_ms: u64,
    /// The latches of earlier unlocks, which are not needed any more.
    pub(crate) spent: &'a [String],
    pub(crate) now_ms: u64,
    /// As [`Ask::publish`].
    pub(crate) publish: &'a str,
}

/// A grant that lasts for a time and is then released.
pub(crate) trait Lease: Send + Sync + 'static {
    /// Returns the script with which the watchdog extends the lease. `None` for kinds whose grants
    /// never expire. Only a release ends such a grant, so the server remembers a request for as
    /// long as its client asks about the outcome.
    fn renewal(&self) -> Option<&'static RenewalScript>;

    /// Returns the parts of the key that a grant covers.
    fn parts(&self) -> Parts {
        Parts::WHOLE
    }

    /// Writes the call that releases one level. It replies 1 or more if the lock is free now, 0 if
    /// a level remains, nil if the lock was not held. The latch is the last key before the spent
    /// latches. A call that the server does not [remember](Lease::is_remembered) has no latch, and
    /// replies 1 if the lock is free now, 0 if it was not held.
    fn release(&self, unlock: &Unlock<'_>) -> Call;

    /// Returns true if the server remembers a release by a latch, so that a repeat of the request
    /// takes no other level. A kind without levels needs no latch.
    fn is_remembered(&self) -> bool {
        true
    }

    /// Returns the script for a user who may not use the latch. `None` for kinds that such a user
    /// cannot acquire in the first place.
    fn release_without_latch(&self) -> Option<&'static Script>;

    /// Returns the rights that the user needs.
    fn rights(&self) -> &'static Rights;

    /// For kinds that reply to a final release with 1 plus the number of clients that the message
    /// has reached: returns the channel of that message.
    fn counted(&self, _key: &str) -> Option<String> {
        None
    }
}

/// A kind of object on one master whose grants become guards.
pub(crate) trait Kind: Attempt + Lease {}

impl<K: Attempt + Lease> Kind for K {}

/// The state of a key that several kinds share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// True if it is taken in the way of the kind that asks.
    pub(crate) is_locked: bool,
    /// True if a forced release of that kind frees it.
    pub(crate) is_forcible: bool,
}

/// An object that has owners and can be freed for all of them.
pub(crate) trait ForceRelease {
    /// Returns an error if the object cannot be used as the application has set it up.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Writes the call that frees the object for all owners, and publishes that with the command
    /// `publish`. It replies 1 if there was anything to free.
    fn force_release(&self, key: &str, now_ms: u64, publish: &str) -> Call;

    /// Maps an owner to its field. In most kinds they are the same.
    fn owner_field(&self, owner: String) -> String {
        owner
    }

    /// Returns the query for the rest of the lease in ms. The answer is that of PTTL.
    fn ask_left(&self, key: &str) -> Cmd {
        let mut left = redis::cmd("PTTL");
        left.arg(key);
        left
    }

    /// Returns the query for the number of levels that an owner, given by its field, holds.
    fn ask_levels(&self, key: &str, owner: &str) -> Cmd {
        let mut levels = redis::cmd("HGET");
        levels.arg(key).arg(owner);
        levels
    }

    /// Reads the answer to [`ForceRelease::ask_levels`].
    fn read_levels(&self, answer: &Value) -> Result<u64> {
        Ok(read_number(answer)?.unwrap_or(0))
    }

    /// For kinds that share their key: returns the script that reads how the key is taken. The key
    /// of any other kind exists exactly while the lock is held.
    fn look(&self, _key: &str) -> Option<Call> {
        None
    }

    /// Reads the reply to [`ForceRelease::look`].
    fn read_look(&self, reply: &Value) -> Result<Taken> {
        Err(Error::unexpected(reply))
    }
}

/// A kind of lock on one master.
pub(crate) trait LockKind: Kind + ForceRelease {}

impl<K: Kind + ForceRelease> LockKind for K {}

/// Converts a PTTL reply to the time for which a waiter may sleep.
pub(crate) fn sleep_for(pttl: i64) -> Sleep {
    remaining(pttl).map_or(Sleep::Unknown, Sleep::Left)
}

/// Converts a PTTL reply to a duration; `None` if it is negative, which means no TTL.
pub(crate) fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}

/// Returns the queries for a level of a lock that is a hash with a field for each owner: the TTL,
/// then the count. The order matters. No request that adds a level is under way, so every level
/// that the second answer counts already existed at the first, and both answers describe the same
/// key.
pub(crate) fn probe_hash(ask: &Ask<'_>) -> Vec<Cmd> {
    let (mut left, mut count) = (redis::cmd("PTTL"), redis::cmd("HGET"));
    left.arg(ask.key);
    count.arg(ask.key).arg(ask.owner);
    vec![left, count]
}

/// Reads the answers to [`probe_hash`]. The request was executed if the owner has one level more
/// than `known`; the result then carries the rest of the lease.
pub(crate) fn found_in_hash(answers: &[Value], known: &Known) -> Result<Told<Duration>> {
    let [left, count, ..] = answers else { return Err(Error::unexpected(&Value::Nil)) };
    let count = read_number(count)?.unwrap_or(0);
    let Value::Int(left) = left else { return Err(Error::unexpected(left)) };
    known.told(&[count], remaining(*left).unwrap_or_default()).ok_or_else(|| Error::unexpected(&Value::Nil))
}

/// Reads a number that Redis stores as text. `None` if the reply is nil.
pub(crate) fn read_number(reply: &Value) -> Result<Option<u64>> {
    match reply {
        Value::Nil => Ok(None),
        Value::BulkString(text) => {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            number.map(Some).ok_or_else(|| Error::unexpected(reply))
        }
        other => Err(Error::unexpected(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::Levels;

    #[test]
    fn a_probe_finds_what_is_more_than_known() {
        let count = |count: &str| Value::BulkString(count.as_bytes().to_vec());
        let ms = |ms| Told::Obeyed(Duration::from_millis(ms));
        let levels = |count| Known {
            levels: vec![Levels { least: count, most: count }],
            old_left: Duration::ZERO,
            new_left: Duration::ZERO,
        };
        for (answers, known, found) in [
            ([Value::Int(-2), Value::Nil], 0, Told::NotObeyed),
            ([Value::Int(500), count("1")], 0, ms(500)),
            ([Value::Int(500), count("1")], 1, Told::NotObeyed),
            ([Value::Int(500), count("2")], 1, ms(500)),
            // The lease ended between the two queries.
            ([Value::Int(500), Value::Nil], 0, Told::NotObeyed),
        ] {
            assert_eq!(found_in_hash(&answers, &levels(known)).unwrap(), found, "{answers:?} {known}");
        }
        found_in_hash(&[Value::Int(1), count("many")], &levels(0)).unwrap_err();
    }
}
