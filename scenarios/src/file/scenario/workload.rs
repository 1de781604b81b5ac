//! What a client does over and over, until the end of the storm.
//!
//! A workload is a type with its parameters and its [`WorkloadKind`], a line in the table below,
//! and its arm in `run/workload.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Lock,
    limits::{self, Wrong},
    step::{Asks, check_held, check_latch, check_permits, check_rate},
};
use crate::{
    file::{name::Name, one_of::one_of},
    units::{Draw, Rate, Span},
};

/// The most levels of a reentrant lock that one round of a workload takes.
const LEVELS_MAX: u32 = 100;

one_of! {
    /// What a client does over and over. Exactly one kind.
    pub struct WorkloadEntry {}

    /// A kind of workload.
    pub enum Workload: WorkloadKind {
        /// Acquire, hold (writing to the resource), release, think, again, until the end of the
        /// storm, and then until it was granted once more.
        contend: Contend,
        /// Set a latch, count it down or wait for it, as drawn, think, again, until the end of the
        /// storm; and then all of it once more.
        count: Count,
        /// Take permits of a rate limiter, think, again, until the end of the storm, and then until
        /// they were granted once more.
        take: Take,
    }
}

/// What there is to say of a workload before it runs.
pub trait WorkloadKind {
    /// Whether it can be done.
    ///
    /// # Errors
    /// The key that is mistaken.
    fn check(&self) -> Result<(), Wrong>;
    /// Whether it can be done with this lock.
    ///
    /// # Errors
    /// The key that is mistaken.
    fn check_lock(&self, lock: &Lock) -> Result<(), Wrong>;
    /// The locks that it names.
    fn locks(&self) -> &[Name] {
        &[]
    }
    /// The key by which it has its locks shared, if it has.
    fn shares(&self) -> Option<&'static str> {
        None
    }
    /// Whether it takes its locks as one, all or none.
    fn takes_together(&self) -> bool {
        false
    }
    /// What a lock library must be able to do for it.
    fn asks(&self) -> Asks {
        Asks::More
    }
}

/// Acquire, hold, release, think, again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contend {
    /// How long the lock is held.
    pub hold: Draw<Span>,
    /// The locks that a round takes together, in this order, by the names of their tables; all if
    /// left out, in the order of the file. Writes go under the first.
    #[serde(default)]
    pub of: Option<Vec<Name>>,
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// How long to wait for the lock at most; as long as it takes if left out.
    #[serde(default)]
    pub wait: Option<Span>,
    /// How often to write to the resource while holding; once, in the middle, if left out.
    #[serde(default)]
    pub write_every: Option<Span>,
    /// How many rounds; until the end of the storm if left out.
    #[serde(default)]
    pub rounds: Option<u32>,
    /// How many levels of a reentrant lock a round takes at most: each round draws how many, takes
    /// them one inside the other and gives them back one by one. One if left out.
    #[serde(default)]
    pub levels: Option<u32>,
    /// How many permits of a semaphore a round takes; one if left out.
    #[serde(default)]
    pub permits: Option<u32>,
    /// Whether a round asks for its locks as for one, all or none: the multi lock. It waits for all
    /// of them together, with the lease of the first; if left out, one after the other.
    #[serde(default)]
    pub together: bool,
    /// In which share of the rounds, such as `"60%"`, read-write locks are held together with
    /// others that do so, and nothing is written to the resource. None if left out.
    #[serde(default)]
    pub shared: Option<Rate>,
    /// In which share of the other rounds the owner keeps them for reading when it gives up writing
    /// half-way: a downgrade. None if left out.
    #[serde(default)]
    pub downgrades: Option<Rate>,
}

impl WorkloadKind for Contend {
    fn asks(&self) -> Asks {
        let is_plain = self.shared.is_none() && self.downgrades.is_none() && self.permits.is_none();
        match is_plain && self.levels.is_none() && !self.together {
            true => Asks::Lock { lease: false, watchdog: false },
            false => Asks::More,
        }
    }

    fn check(&self) -> Result<(), Wrong> {
        limits::period("write_every", self.write_every)?;
        if self.of.as_ref().is_some_and(Vec::is_empty) {
            return Err(Wrong::at("of", "a round needs a lock to take"));
        }
        if self.together && self.levels.is_some() {
            return Err(Wrong::at("levels", "locks that are taken together are taken once"));
        }
        for (key, share) in [("shared", self.shared), ("downgrades", self.downgrades)] {
            if share.is_some_and(|Rate(share)| !(0.0..=1.0).contains(&share)) {
                return Err(Wrong::at(key, "it is a share: from 0% to 100%"));
            }
        }
        if self.together && self.shares().is_some() {
            return Err(Wrong::at("together", "locks that are taken together are not shared"));
        }
        match self.levels.filter(|levels| !(1..=LEVELS_MAX).contains(levels)) {
            None => Ok(()),
            Some(levels) => {
                let message = format!(
                    "a round cannot take {levels} levels of the lock: from one to {LEVELS_MAX} it can"
                );
                Err(Wrong::at("levels", message))
            }
        }
    }

    fn check_lock(&self, lock: &Lock) -> Result<(), Wrong> {
        check_held(lock)?;
        check_permits(self.permits, lock)
    }

    fn locks(&self) -> &[Name] {
        self.of.as_deref().unwrap_or_default()
    }

    fn takes_together(&self) -> bool {
        self.together
    }

    fn shares(&self) -> Option<&'static str> {
        let keys = [("shared", self.shared), ("downgrades", self.downgrades)];
        keys.into_iter().find(|(_, share)| share.is_some()).map(|(key, _)| key)
    }
}

/// Set a latch, count it down or wait for it, think, again.
///
/// After the storm a client sets it once more, counts it down as often as it was set to, and waits:
/// whatever the others do, it is open when all of them have done so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// How long to wait for the latch at most.
    pub wait: Span,
}

impl WorkloadKind for Count {
    fn check(&self) -> Result<(), Wrong> {
        Ok(())
    }

    fn check_lock(&self, lock: &Lock) -> Result<(), Wrong> {
        check_latch(lock)
    }
}

/// Take permits, think, again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Take {
    /// How many permits a round takes at most: each draws how many.
    #[serde(default = "one")]
    pub permits: u32,
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// How long to wait for them at most; as long as it takes if left out.
    #[serde(default)]
    pub wait: Option<Span>,
}

fn one() -> u32 {
    1
}

impl WorkloadKind for Take {
    fn check(&self) -> Result<(), Wrong> {
        Ok(())
    }

    fn check_lock(&self, lock: &Lock) -> Result<(), Wrong> {
        check_rate(self.permits, lock)
    }
}
