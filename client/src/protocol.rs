//! What differs from one kind of single-server lock to the next: its scripts, its keys and how replies read.

use std::time::Duration;

use redis::Value;

use crate::error::{Error, Result};
use crate::script::Call;

/// One question for the lock.
pub(crate) struct Ask<'a> {
    /// The lock's key.
    pub(crate) lock: &'a str,
    /// The owner field.
    pub(crate) owner: &'a str,
    pub(crate) lease_ms: u64,
    /// How long a queued waiter counts as alive.
    pub(crate) wait_ms: u64,
    /// This client's wall clock.
    pub(crate) now_ms: u64,
}

/// One level of a hold to give back.
pub(crate) struct Unlock<'a> {
    pub(crate) lock: &'a str,
    pub(crate) owner: &'a str,
    /// The same for all repeats of one unlock.
    pub(crate) request: &'a str,
    /// The time that what remains must have, when the owner holds more levels. It never lengthens their own leases.
    pub(crate) remaining_ms: u64,
    /// How long the result is remembered for repeats.
    pub(crate) latch_ms: u64,
    pub(crate) now_ms: u64,
    /// The command that publishes a message.
    pub(crate) publish: &'a str,
}

/// Waiters that leave a queue.
pub(crate) struct Leave<'a> {
    pub(crate) lock: &'a str,
    /// The owner field of each, and the `wait_ms` that it asked with.
    pub(crate) waiters: &'a [(&'a str, u64)],
    pub(crate) now_ms: u64,
    /// The command that publishes a message.
    pub(crate) publish: &'a str,
}

/// The lock's answer to an [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted {
        token: Option<u64>,
    },
    /// Somebody else's for this long; `None` when its key has no time to live.
    Busy(Option<Duration>),
}

/// A kind of lock. Pure: it writes calls and reads replies, others do the talking.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Takes the lock or, in locks that have one, a place in the queue.
    fn acquire(&self, ask: &Ask<'_>) -> Call;

    /// Takes the lock at once or not at all.
    fn try_acquire(&self, ask: &Ask<'_>) -> Call {
        self.acquire(ask)
    }

    /// Reads the reply to [`Protocol::acquire`] and [`Protocol::try_acquire`].
    fn answer(&self, reply: &Value) -> Result<Answer> {
        match reply {
            Value::Nil => Ok(Answer::Granted { token: None }),
            Value::Int(ttl) => Ok(Answer::Busy(remaining(*ttl))),
            other => Err(Error::unexpected(other)),
        }
    }

    /// Gives one level back. Replies 1 when the lock is free now, 0 when a level remains, nil when it was not held.
    fn release(&self, unlock: &Unlock<'_>) -> Call;

    /// Frees the lock whoever holds it, and publishes that with the command `publish`. Replies 1 when there was anything to
    /// free.
    fn force_release(&self, lock: &str, now_ms: u64, publish: &str) -> Call;

    /// Whether those who ask get a place in a queue, which they keep by asking again within their wait and give back
    /// with [`Protocol::leave`].
    fn queues(&self) -> bool {
        false
    }

    /// Gives places in the queue back, of locks that have one.
    fn leave(&self, _leave: &Leave<'_>) -> Option<Call> {
        None
    }

    /// Where `owner` is told that the lock may be free.
    fn channel(&self, lock: &str, owner: &str) -> String;

    /// Where the fencing token of the last grant stands, in locks that have one.
    fn token_key(&self, _lock: &str) -> Option<String> {
        None
    }
}

/// A PTTL reply: negative when there is no time to live.
pub(crate) fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}
