//! What a kind of lock on one master says about itself: how it is asked for, and how it is kept and
//! given back. Pure: it writes calls and reads replies, and others send them.

use std::time::Duration;

use redis::{Cmd, Value};

use crate::error::{Error, Result};
use crate::hold::{Known, Parts, Told};
use crate::renew::RenewalScript;
use crate::rights::Rights;
use crate::script::{Call, Script};
use crate::spin::SpinBackoff;
use crate::wake::Wakes;

/// One request for an object.
pub(crate) struct Ask<'a> {
    pub(crate) key: &'a str,
    /// The owner field.
    pub(crate) owner: &'a str,
    pub(crate) lease_ms: u64,
    /// The caller waits when it is refused. Otherwise it must not be queued.
    pub(crate) waits: bool,
    /// How long a queued waiter counts as alive.
    pub(crate) wait_ms: u64,
    /// This client's wall clock.
    pub(crate) now_ms: u64,
    /// Of kinds whose grants never end by themselves: how long the server remembers that the
    /// request was obeyed.
    pub(crate) memory_ms: u64,
    /// The command that publishes a message.
    pub(crate) publish: &'a str,
}

/// The reply to an [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer<G> {
    Got(G),
    /// Another owner has it.
    Busy(Sleep),
}

/// How long a refused waiter may sleep if no message wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// The holder has this left. Zero when it is free, but another waiter's turn.
    Left(Duration),
    /// Its key has no time to live.
    Unknown,
}

/// A grant that was found after its reply was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found<G> {
    pub(crate) got: G,
    /// The rest of the lease.
    pub(crate) left: Duration,
}

/// Waiters that leave a queue.
pub(crate) struct Leave<'a> {
    pub(crate) key: &'a str,
    /// The owner field of each, and the `wait_ms` that it asked with.
    pub(crate) waiters: &'a [(&'a str, u64)],
    pub(crate) now_ms: u64,
    /// The command that publishes a message.
    pub(crate) publish: &'a str,
}

/// Gives places in a queue back.
pub(crate) type Abandon = fn(&Leave<'_>) -> Call;

/// Something that a server can be asked for, and waited for.
pub(crate) trait Attempt: Send + Sync + 'static {
    /// What a grant brings.
    type Got;

    /// Takes it or, in a waiting request to a kind that has one, a place in the queue.
    fn call(&self, ask: &Ask<'_>) -> Call;

    /// Reads the reply to [`Attempt::call`].
    fn read(&self, reply: &Value) -> Result<Answer<Self::Got>>;

    /// The messages that may end the wait of `owner`. `None` of kinds that publish none, whose
    /// waiters [spin](Attempt::spin_backoff).
    fn wakes(&self, key: &str, owner: &str) -> Option<Wakes>;

    /// Of kinds whose waiters ask again and again: after which delays.
    fn spin_backoff(&self) -> Option<SpinBackoff> {
        None
    }

    /// Of kinds that publish a number of permits: this waiter wants more than one, so that a
    /// message may be too little for it and enough for another.
    fn wants_several(&self) -> bool {
        false
    }

    /// The questions whose answers tell, after a lost reply, whether the request was obeyed.
    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd>;

    /// Reads the answers to [`Attempt::probe`]: the grant, when the request was obeyed. `known` is
    /// what this client knows of the owner's levels, at each of the [parts](Lease::parts).
    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<Self::Got>>>;

    /// Of kinds whose waiters get a place in a queue, which they keep by asking again within their
    /// wait: how it is given back.
    fn abandon(&self) -> Option<Abandon> {
        None
    }
}

/// One level of a hold to give back.
pub(crate) struct Unlock<'a> {
    pub(crate) key: &'a str,
    /// The owner field.
    pub(crate) owner: &'a str,
    /// The id of the request, the same for all repeats of one unlock.
    pub(crate) request: &'a str,
    /// Of kinds whose levels have keys of their own: for how long the longest of those that remain
    /// lasts when the request is written. The script gives it no more than the key that it deletes
    /// has left.
    pub(crate) remaining_ms: u64,
    /// How long the result is remembered for repeats.
    pub(crate) latch_ms: u64,
    /// The latches of earlier unlocks, which are of no more use.
    pub(crate) spent: &'a [String],
    pub(crate) now_ms: u64,
    /// The command that publishes a message.
    pub(crate) publish: &'a str,
}

/// What a grant brings: it lasts until a time, and is released.
pub(crate) trait Lease: Send + Sync + 'static {
    /// The script with which the watchdog extends it. `None` of kinds whose grants never end by
    /// themselves: what no release gives back is gone for good, so that a server remembers requests
    /// for as long as their clients ask what became of them.
    fn renewal(&self) -> Option<&'static RenewalScript>;

    /// What of the key a grant is of.
    fn parts(&self) -> Parts {
        Parts::WHOLE
    }

    /// Gives one level back. Replies 1 or more when it is free now, 0 when a level remains, nil
    /// when it was not held. The last key, before the spent latches, is the latch.
    fn release(&self, unlock: &Unlock<'_>) -> Call;

    /// The same for a user who may not use the latch. `None` of kinds that no such user can
    /// acquire.
    fn release_without_latch(&self) -> Option<&'static Script>;

    /// What the user must be allowed to do.
    fn rights(&self) -> &'static Rights;

    /// Of kinds whose reply to a release that frees it is 1 and the number of clients that the
    /// message has reached: its channel.
    fn counted(&self, _key: &str) -> Option<String> {
        None
    }
}

/// A kind of object on one master whose grants are guards.
pub(crate) trait Kind: Attempt + Lease {}

impl<K: Attempt + Lease> Kind for K {}

/// How a key is taken that several kinds share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// By the kind that looks.
    pub(crate) is_locked: bool,
    /// A forced release of that kind frees it.
    pub(crate) is_forcible: bool,
}

/// Something that has owners, and can be freed for all of them.
pub(crate) trait ForceRelease {
    /// Why it cannot be used as the application has set it up.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Frees it for all owners, and publishes that with the command `publish`. Replies 1 when there
    /// was anything to free.
    fn force_release(&self, key: &str, now_ms: u64, publish: &str) -> Call;

    /// The field of an owner, which `owner` is in most kinds.
    fn owner_field(&self, owner: String) -> String {
        owner
    }

    /// The question for the milliseconds that are left of the lease, answered as by PTTL.
    fn ask_left(&self, key: &str) -> Cmd {
        let mut left = redis::cmd("PTTL");
        left.arg(key);
        left
    }

    /// The question how many levels an owner, by its field, holds.
    fn ask_levels(&self, key: &str, owner: &str) -> Cmd {
        let mut levels = redis::cmd("HGET");
        levels.arg(key).arg(owner);
        levels
    }

    /// Reads the answer to [`ForceRelease::ask_levels`].
    fn read_levels(&self, answer: &Value) -> Result<u64> {
        Ok(read_number(answer)?.unwrap_or(0))
    }

    /// Of kinds that share their key: the script that tells how it is taken. The key of others is
    /// there while they are held.
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

/// A PTTL reply as the time that the holder has left.
pub(crate) fn sleep_for(pttl: i64) -> Sleep {
    remaining(pttl).map_or(Sleep::Unknown, Sleep::Left)
}

/// A PTTL reply: negative when there is no time to live.
pub(crate) fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}

/// The questions for a level of a lock that is a hash with a field for each owner: the time to live
/// and the count. In this order: no request that adds a level is under way, so that what the owner
/// has at the second question it had at the first one, and both are of the same key.
pub(crate) fn probe_hash(ask: &Ask<'_>) -> Vec<Cmd> {
    let (mut left, mut count) = (redis::cmd("PTTL"), redis::cmd("HGET"));
    left.arg(ask.key);
    count.arg(ask.key).arg(ask.owner);
    vec![left, count]
}

/// Reads the answers to [`probe_hash`]: what is left of the lease when the owner has a level more
/// than are `known`.
pub(crate) fn found_in_hash(answers: &[Value], known: &Known) -> Result<Told<Duration>> {
    let [left, count, ..] = answers else { return Err(Error::unexpected(&Value::Nil)) };
    let count = read_number(count)?.unwrap_or(0);
    let Value::Int(left) = left else { return Err(Error::unexpected(left)) };
    known.told(&[count], remaining(*left).unwrap_or_default()).ok_or_else(|| Error::unexpected(&Value::Nil))
}

/// Reads a number that Redis keeps as text; `None` when there is none.
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
            // The lease ended between the two questions.
            ([Value::Int(500), Value::Nil], 0, Told::NotObeyed),
        ] {
            assert_eq!(found_in_hash(&answers, &levels(known)).unwrap(), found, "{answers:?} {known}");
        }
        found_in_hash(&[Value::Int(1), count("many")], &levels(0)).unwrap_err();
    }
}
