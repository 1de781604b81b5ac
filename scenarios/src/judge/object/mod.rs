//! The kinds of locks, with one adapter per kind for the recorder and the checkers.
//!
//! A lock lives in keys. Reading (`reading`) and copying the contents of keys is the same for every
//! kind, on simulated and on real nodes. An adapter names the lock's keys, derives the holders from
//! their contents, and states the lock's guarantee. To add a kind, add its name to [`LockKind`]
//! with a line in `object`, write its adapter, and add it to `subject/client.rs`, which drives it.

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
    exclusive::HOLDER_FIELD,
    keys::{Keys, Role},
    one_name::{Apart, object as of_one_name},
    reading::{Content, Value, keyspace_of},
};

/// A kind of lock that a scenario can put on trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// The reentrant lock.
    #[default]
    Plain,
    /// The lock granted in the order of requests.
    Fair,
    /// The lock that hands out fencing tokens.
    Fenced,
    /// The reentrant lock whose waiters poll instead of waiting for messages.
    Spin,
    /// The lock that its owner cannot acquire a second time.
    NonReentrant,
    /// The non-reentrant lock granted in the order of requests.
    NonReentrantFair,
    /// The lock in a string, which one SET acquires. Its owner cannot acquire it a second time, and
    /// its waiters poll.
    String,
    /// Redlock over independent masters. Older files call it `red`.
    #[serde(alias = "red")]
    Redlock,
    /// Many readers or one writer.
    ReadWrite,
    /// Each client locks two of three values of one hash, both or neither; any two clients share a
    /// value.
    FasterMulti,
    /// At most a given number of permits at a time.
    Semaphore,
    /// At most a given number of permits at a time, each with a lease of its own.
    PermitSemaphore,
    /// Closed until it is counted down a given number of times.
    Latch,
    /// At most a given number of permits in any window, for all clients together or for each.
    Rate,
}

impl LockKind {
    /// All kinds; the production client implements every one.
    pub(crate) const ALL: &[LockKind] = &[
        LockKind::Plain,
        LockKind::Fair,
        LockKind::Fenced,
        LockKind::Spin,
        LockKind::NonReentrant,
        LockKind::NonReentrantFair,
        LockKind::String,
        LockKind::Redlock,
        LockKind::ReadWrite,
        LockKind::FasterMulti,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
        LockKind::Latch,
        LockKind::Rate,
    ];

    /// Returns the adapter of this kind. `amount` matters for kinds with a number, such as permits.
    pub(crate) fn object(self, amount: impl Into<Amount>) -> Rc<dyn Object> {
        let Amount { number, window_ms, per_client } = amount.into();
        match self {
            // The grant hands out a fencing token too, but the holder is the same.
            LockKind::Plain
            | LockKind::Fenced
            | LockKind::Spin
            | LockKind::NonReentrant
            | LockKind::String => Rc::new(exclusive::Exclusive),
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

    /// Returns true if independent masters each grant the lock and a majority of them is needed.
    pub fn needs_quorum(self) -> bool {
        self.object(1).needs_quorum()
    }

    /// Returns true if the lock has one owner at a time.
    pub(crate) fn has_one_owner(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Exclusive | history::LockKind::Fair)
    }

    /// Returns true if grants come with fencing tokens.
    pub(crate) fn has_tokens(self) -> bool {
        self == LockKind::Fenced
    }

    /// Returns true if several owners can hold the lock at a time, as readers do.
    pub fn can_be_shared(self) -> bool {
        self.object(1).promises() == history::LockKind::ReadWrite
    }

    /// Returns true if the lock has a number of permits, and its keys do not say which line of work
    /// of a client has them.
    pub fn has_permits(self) -> bool {
        let promises = self.object(1).promises();
        promises.permits().is_some() || matches!(promises, history::LockKind::Rate { .. })
    }

    /// Returns true if each permit has an id and a lease of its own.
    pub fn has_ids(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Permits { .. })
    }

    /// Returns true if permits end with a window instead of a release.
    pub fn is_rate(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Rate { .. })
    }

    /// Returns true for a latch, which owners count down and wait for, but never hold.
    pub fn is_latch(self) -> bool {
        matches!(self.object(1).promises(), history::LockKind::Latch { .. })
    }
}

/// The numbers that configure a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// The number of permits, or of count-downs.
    pub(crate) number: u32,
    /// The length of the window in which this many permits are granted.
    pub(crate) window_ms: u64,
    /// True if each client has this many permits of its own.
    pub(crate) per_client: bool,
}

impl From<u32> for Amount {
    fn from(number: u32) -> Amount {
        Amount { number, window_ms: 1_000, per_client: false }
    }
}

/// The adapter of a kind of lock.
///
/// The defaults fit a lock in one key that names its holders, with the companion keys of Redisson's
/// locks. The companions are observed for every such kind: a model of another algorithm may use any
/// of them.
pub(crate) trait Object: fmt::Debug {
    /// Returns the lock's guarantee.
    fn promises(&self) -> history::LockKind;

    /// Returns true if a majority of independent masters must grant the lock.
    fn needs_quorum(&self) -> bool {
        false
    }

    /// Returns the authority, given the groups of nodes that can grant the lock, each a master and
    /// its replicas.
    fn authority(&self, groups: Vec<Vec<Host>>) -> Authority {
        Authority::group(groups.into_iter().next().unwrap_or_default())
    }

    /// Returns the keys of the lock with this name.
    fn keys(&self, name: &str) -> Keys {
        exclusive::keys(name)
    }

    /// Returns true if each owner has a lease of its own, which may end while others hold the lock.
    fn leases_are_apart(&self) -> bool {
        false
    }

    /// Derives the holders from the values of the keys, which are in the order of [`Object::keys`].
    /// The keys of some kinds do not name the holders. Then the result depends on the state
    /// `before` and on the owner `by` whose command changed the keys.
    fn holding(&self, values: &[Value], before: &Known, by: Option<&str>) -> Holding {
        let _ = (before, by);
        exclusive::holding(values)
    }
}

/// The number of levels of each name, for kinds without modes.
pub(crate) type Counts = BTreeMap<String, u32>;

/// The holds of a lock by owner name and mode.
pub(crate) type Holds = BTreeMap<(String, Mode), Hold>;

/// An owner's hold of a lock in one mode, as one node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) count: u32,
    /// The expiry by the node's wall clock.
    pub(crate) expires_ms: Option<i64>,
}

/// Returns the holds of owners that exclude each other and share one lease.
fn alone(counts: Counts, expires_ms: Option<i64>) -> Holds {
    let holds = counts.into_iter();
    holds.map(|(name, count)| ((name, Mode::Exclusive), Hold { count, expires_ms })).collect()
}

/// The state of a lock before its keys changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) counts: Counts,
    /// The part of `counts` that is held in exclusive mode.
    pub(crate) alone: Counts,
    /// [`Holding::levels`] before the change.
    pub(crate) levels: Counts,
    /// The number of permits left.
    pub(crate) left: Option<i64>,
}

/// The holders of a lock and their expiries, as one node has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) holds: Holds,
    /// The last fencing token.
    pub(crate) token: Option<u64>,
    /// The number of permits left, for kinds with permits.
    pub(crate) left: Option<i64>,
    /// The number of count-downs until the latch opens, for latches.
    pub(crate) count: Option<u64>,
    /// The grants of the window by name, for rate limiters.
    pub(crate) grants: Grants,
    /// The number of levels of each field, over or not, for locks of different kinds in one key.
    pub(crate) levels: Counts,
}

/// Grants of a rate limiter, by their names.
pub(crate) type Grants = BTreeMap<String, Passing>;

/// A grant of a rate limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passing {
    /// The number of permits.
    pub(crate) permits: u32,
    /// The id of the client whose rate it uses; `None` if it uses the common rate.
    pub(crate) client: Option<String>,
}
