//! The events of locks, for metrics and recorders.

use std::time::Duration;

use crate::env::Boottime;
use crate::error::Error;

/// Receives the events of a client's locks: for metrics in production, for the beliefs of a client in a simulation.
///
/// Called synchronously from the task that the event happens in, so it must be quick and must not block.
pub trait Observer: Send + Sync + 'static {
    /// Something happened to `event.lock`.
    fn observe(&self, event: &Event<'_>);
}

/// One event of one lock and owner.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The lock's key in Redis.
    pub lock: &'a str,
    /// The owner as Redis knows it: `<client id>:<owner id>`, or the random value of a Redlock.
    pub owner: &'a str,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened to a lock.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The lock is being asked for.
    Attempt,
    /// The lock is held from now until `deadline`.
    Acquired {
        /// Distinguishes the holds of one client, also nested ones of one owner.
        hold: u64,
        /// The lease that was written.
        lease: Duration,
        /// Until when the client may believe that it holds the lock, unless it is renewed.
        deadline: Boottime,
        /// The fencing token, of locks that have one.
        token: Option<u64>,
    },
    /// The lease was extended.
    Renewed {
        /// The hold that was renewed.
        hold: u64,
        /// The new end of the client's belief.
        deadline: Boottime,
    },
    /// A renewal failed; it is repeated while the lease lasts.
    RenewFailed {
        /// The hold that was not renewed.
        hold: u64,
        /// Why.
        error: &'a Error,
    },
    /// The client knows that it no longer holds the lock.
    Lost {
        /// The hold that is lost.
        hold: u64,
        /// How it knows.
        why: LossCause,
    },
    /// The hold is being given back: from here on the client does not believe that it holds the lock.
    Releasing {
        /// The hold.
        hold: u64,
    },
    /// The hold was given back, or the attempt to do so failed.
    Released {
        /// The hold.
        hold: u64,
        /// The error when it failed.
        error: Option<&'a Error>,
    },
    /// Another owner has the lock; the waiter sleeps for at most this long.
    Waiting {
        /// The longest sleep; `None` when there is no limit but a message.
        at_most: Option<Duration>,
    },
    /// The waiter continues.
    Woken {
        /// What ended the sleep.
        by: WokenBy,
    },
}

/// How a client knows that it lost a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// The lease, less the margin for drift, has run out by this client's clock.
    Expired,
    /// The server says that the owner does not hold the lock.
    NotHeld,
    /// Fewer than a quorum of the nodes of a Redlock could be extended in time.
    NoQuorum,
}

/// What ended a waiter's sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WokenBy {
    /// An unlock was announced, or the subscription was renewed and may have missed one.
    Message,
    /// The holder's lease may have run out.
    Timer,
}

/// Ignores all events.
pub(crate) struct Silent;

impl Observer for Silent {
    fn observe(&self, _event: &Event<'_>) {}
}
