//! The workloads: work that a client repeats until the end of the storm.
//!
//! To add a workload, write a type with its parameters and its [`WorkloadKind`], and add its line
//! to the table below and its arm to `run/workload.rs`.

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

/// The most levels of a reentrant lock in one round of a workload.
const LEVELS_MAX: u32 = 100;

one_of! {
    /// Work that a client repeats. Exactly one kind is given.
    pub struct WorkloadEntry {}

    /// A kind of workload.
    pub enum Workload: WorkloadKind {
        /// Acquire the lock, hold it and write to the resource, release it, pause; repeat until the
        /// end of the storm, and then until the lock is granted once more.
        contend: Contend,
        /// Set a latch, count it down or wait for it, at random, pause; repeat until the end of the
        /// storm, and then do all three once more.
        count: Count,
        /// Take permits of a rate limiter, pause; repeat until the end of the storm, and then until
        /// permits are granted once more.
        take: Take,
    }
}

/// The properties of a workload that are known before it runs.
pub trait WorkloadKind {
    /// Checks the parameters of the workload.
    ///
    /// # Errors
    /// The key that is mistaken.
    fn check(&self) -> Result<(), Wrong>;
    /// Checks that the workload can be done with this lock.
    ///
    /// # Errors
    /// The key that is mistaken.
    fn check_lock(&self, lock: &Lock) -> Result<(), Wrong>;
    /// Returns the locks that the workload names; none if it works with all.
    fn locks(&self) -> &[Name] {
        &[]
    }
    /// Returns the key that makes it share its locks, or `None` if it never shares them.
    fn shares(&self) -> Option<&'static str> {
        None
    }
    /// Returns true if the workload acquires all of its locks or none.
    fn takes_together(&self) -> bool {
        false
    }
    /// Returns the ability of a lock library that the workload requires.
    fn asks(&self) -> Asks {
        Asks::More
    }
}

/// Acquires the lock, holds it, releases it, pauses, and repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contend {
    /// The time that the lock is held.
    pub hold: Draw<Span>,
    /// The locks that a round holds together, by the names of their tables, in the order of
    /// acquisition. Default: all, in the order of the file. Writes use the first.
    #[serde(default)]
    pub of: Option<Vec<Name>>,
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// The longest time to wait for the lock. Default: no limit.
    #[serde(default)]
    pub wait: Option<Span>,
    /// The interval between two writes to the resource while the lock is held. Default: one write,
    /// in the middle.
    #[serde(default)]
    pub write_every: Option<Span>,
    /// The number of rounds. Default: until the end of the storm.
    #[serde(default)]
    pub rounds: Option<u32>,
    /// The most levels of a reentrant lock in a round. Each round draws a number, acquires this
    /// number of levels, one inside the other, and releases them one by one. Default: one.
    #[serde(default)]
    pub levels: Option<u32>,
    /// The number of permits of a semaphore that a round acquires. Default: one.
    #[serde(default)]
    pub permits: Option<u32>,
    /// True if a round acquires all of its locks or none: the multi lock. It waits for all of them
    /// together, with the lease of the first. Default: one after the other.
    #[serde(default)]
    pub together: bool,
    /// The share of rounds, such as `"60%"`, that acquire the read half of read-write locks, which
    /// others can hold too, and write nothing to the resource. Default: none.
    #[serde(default)]
    pub shared: Option<Rate>,
    /// The share of the other rounds in which the owner stops writing half-way and continues as a
    /// reader: a downgrade. Default: none.
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

/// Sets a latch, counts it down or waits for it, pauses, and repeats.
///
/// After the storm each client sets the latch once more, counts it down as often as its count, and
/// waits: when all clients have done so, the latch is open, in whatever order they act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// The longest time to wait for the latch.
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

/// Takes permits, pauses, and repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Take {
    /// The most permits that a round takes. Each round draws a number.
    #[serde(default = "one")]
    pub permits: u32,
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// The longest time to wait for permits. Default: no limit.
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
