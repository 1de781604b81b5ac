//! The kinds of locks, as the recorder and the checkers have to know them: one adapter for each.
//!
//! A lock lives in keys. What is in them (`reading`) is the same to look at for every kind, on a
//! simulated node and on a real one, and so is how a copy of it is made. An adapter says which keys
//! there are, who holds the lock when they read so, and what the lock promises. To add a kind, add
//! its name to [`LockKind`] with a line in `object`, write its adapter, and have
//! `subject/client.rs` drive it.

mod exclusive;
mod fair;
pub(crate) mod faster_multi;
mod keys;
mod latch;
mod one_name;
mod read_write;
mod permit_semaphore;
mod rate;
mod reading;
mod redlock;
mod semaphore;

use std::{collections::BTreeMap, fmt, rc::Rc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::history::{self, Authority, Host, Mode};

pub(crate) use self::{
    keys::{Keys, Role},
    one_name::{Apart, object as of_one_name},
    reading::{Content, Value, keyspace_of},
};

/// The locks a scenario can put on trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// The reentrant lock.
    #[default]
    Plain,
    /// The lock that is granted in the order of asking.
    Fair,
    /// The lock that hands out fencing tokens.
    Fenced,
    /// The reentrant lock whose waiters ask again and again, without messages.
    Spin,
    /// The lock that its owner cannot take again.
    NonReentrant,
    /// The same, granted in the order of asking.
    NonReentrantFair,
    /// Redlock over independent masters. Older files call it `red`.
    #[serde(alias = "red")]
    Redlock,
    /// Many readers or one writer.
    ReadWrite,
    /// Two values of one hash, all or none; any two clients have one in common.
    FasterMulti,
    /// So many permits at a time.
    Semaphore,
    /// So many permits at a time, each with a lease of its own.
    PermitSemaphore,
    /// Closed until it was counted down so many times.
    Latch,
    /// So many permits in any window, of all clients together or of each by itself.
    Rate,
}

impl LockKind {
    /// Every kind; the production client has them all.
    pub(crate) const ALL: &[LockKind] = &[
        LockKind::Plain,
        LockKind::Fair,
        LockKind::Fenced,
        LockKind::Spin,
        LockKind::NonReentrant,
        LockKind::NonReentrantFair,
        LockKind::Redlock,
        LockKind::ReadWrite,
        LockKind::FasterMulti,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
        LockKind::Latch,
        LockKind::Rate,
    ];

    /// The adapter of a lock of this kind, of which there is so much if it has a number.
    pub(crate) fn object(self, amount: impl Into<Amount>) -> Rc<dyn Object> {
        let Amount { number, window_ms, per_client } = amount.into();
        match self {
            // A fencing token is handed out with the grant, and does not change the holder.
            LockKind::Plain | LockKind::Fenced | LockKind::Spin | LockKind::NonReentrant => {
                Rc::new(exclusive::Exclusive)
            }
            LockKind::Fair | LockKind::NonReentrantFair => Rc::new(fair::Fair),
            LockKind::Redlock => Rc::new(redlock::Redlock),
            LockKind::ReadWrite => Rc::new(read_write::ReadWrite),
            LockKind::FasterMulti => Rc::new(faster_multi::FasterMulti),
            LockKind::Semaphore => Rc::new(semaphore::Semaphore { permits: number }),
            LockKind::PermitSemaphore => Rc::new(permit_semaphore::PermitSemaphore { permits: number }),
            LockKind::Latch => Rc::new(latch::Latch { count: number }),
            LockKind::Rate => Rc::new(rate::Rate { permits: number, window_ms, per_client }),
        }
    }

    /// Whether independent masters grant the lock, each by itself, and a majority of them is
    /// needed.
    pub fn needs_quorum(self) -> bool {
        self.object(1).needs_quorum()
    }

    /// Whether one owner at a time holds it, alone.
    pub(crate) fn has_one_owner(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Exclusive | history::LockKind::Fair)
    }

    /// Whether it hands out fencing tokens.
    pub(crate) fn has_tokens(self) -> bool {
        self == LockKind::Fenced
    }

    /// Whether it can be asked for together with others, as readers do.
    pub fn can_be_shared(self) -> bool {
        self.object(1).promises() == history::LockKind::ReadWrite
    }

    /// Whether it has a number of permits, and its keys do not say which line of work of a client
    /// has them.
    pub fn has_permits(self) -> bool {
        let promises = self.object(1).promises();
        promises.permits().is_some() || matches!(promises, history::LockKind::Rate { .. })
    }

    /// Whether its permits have ids, and leases of their own.
    pub fn has_ids(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Permits { .. })
    }

    /// Whether its permits end with a window.
    pub fn is_rate(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Rate { .. })
    }

    /// Whether it is counted down and waited for, and has no holder.
    pub fn is_latch(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Latch { .. })
    }
}

/// How much there is of a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// How many permits, or how many times it must be counted down.
    pub(crate) number: u32,
    /// The time in which there are so many permits.
    pub(crate) window_ms: u64,
    /// Whether each client has so many by itself.
    pub(crate) per_client: bool,
}

impl From<u32> for Amount {
    fn from(number: u32) -> Amount {
        Amount { number, window_ms: 1_000, per_client: false }
    }
}

/// A kind of lock.
///
/// The defaults are those of a lock in one key, which says who holds it, with the companions of
/// Redisson's. They are watched whatever a scenario calls the lock: a model of another algorithm
/// may use any of them.
pub(crate) trait Object: fmt::Debug {
    /// What the lock promises.
    fn promises(&self) -> history::LockKind;

    /// Whether a majority of independent masters must grant it.
    fn needs_quorum(&self) -> bool {
        false
    }

    /// Whose grant counts, if these groups of nodes can grant it, each a master and its replicas.
    fn authority(&self, groups: Vec<Vec<Host>>) -> Authority {
        Authority::group(groups.into_iter().next().unwrap_or_default())
    }

    /// The keys of the lock with this name.
    fn keys(&self, name: &str) -> Keys {
        exclusive::keys(name)
    }

    /// Whether each owner has a lease of its own, so that one may end while others hold the lock.
    fn leases_are_apart(&self) -> bool {
        false
    }

    /// Who holds the lock when its keys read so, in the order of [`Object::keys`]. Not every kind's
    /// keys say that: who it is may follow from who held it `before`, and from the name of the
    /// owner `by` whom the keys have been changed.
    fn holding(&self, values: &[Value], before: &Known, by: Option<&str>) -> Holding {
        let _ = (before, by);
        exclusive::holding(values)
    }
}

/// How many times each name holds a lock, of kinds that know no modes.
pub(crate) type Counts = BTreeMap<String, u32>;

/// The holds of a lock: by the name of the owner, one in each mode.
pub(crate) type Holds = BTreeMap<(String, Mode), Hold>;

/// What an owner has of a lock in one mode, as one node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) count: u32,
    /// When it expires, by the node's wall clock.
    pub(crate) expires_ms: Option<i64>,
}

/// The holds of owners who exclude each other, and who share one lease.
fn alone(counts: Counts, expires_ms: Option<i64>) -> Holds {
    let holds = counts.into_iter();
    holds.map(|(name, count)| ((name, Mode::Exclusive), Hold { count, expires_ms })).collect()
}

/// What was known of a lock before its keys were changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) counts: Counts,
    /// Of these the counts of who has it alone.
    pub(crate) alone: Counts,
    /// As a [`Holding`] has them.
    pub(crate) levels: Counts,
    /// How many permits were left.
    pub(crate) left: Option<i64>,
}

/// Who holds a lock as one node has it, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) holds: Holds,
    /// The last fencing token.
    pub(crate) token: Option<u64>,
    /// How many permits are left, of kinds that have some.
    pub(crate) left: Option<i64>,
    /// How many times it must be counted down until it opens, of a latch.
    pub(crate) count: Option<u64>,
    /// The grants of the window, of a rate limiter, by their names.
    pub(crate) grants: Grants,
    /// How many levels each field has, over or not, of locks of different kinds in one key.
    pub(crate) levels: Counts,
}

/// Grants of a rate limiter, by their names.
pub(crate) type Grants = BTreeMap<String, Passing>;

/// A grant of a rate limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passing {
    /// How many permits.
    pub(crate) permits: u32,
    /// The id of the client that it counts for, if not for all.
    pub(crate) client: Option<String>,
}
