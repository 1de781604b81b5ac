//! Stretches of true time in which owners had a lock, and where those of two owners overlap: the one sweep behind every question
//! about mutual exclusion.

use std::time::Duration;

use lockstorm_sim::time::True;

use crate::history::{Lock, Mode, Owner};

/// A stretch of true time in which an owner had a lock, in whatever sense; its end is not part of it.
pub(super) trait Interval {
    fn lock(&self) -> Lock;
    fn owner(&self) -> Owner;
    fn mode(&self) -> Mode;
    fn from(&self) -> True;
    fn until(&self) -> True;
}

/// Makes a struct an [`Interval`] that has its parts for fields.
macro_rules! interval {
    ($kind:ty) => {
        impl $crate::checker::interval::Interval for $kind {
            fn lock(&self) -> Lock {
                self.lock
            }
            fn owner(&self) -> Owner {
                self.owner
            }
            fn mode(&self) -> Mode {
                self.mode
            }
            fn from(&self) -> True {
                self.from
            }
            fn until(&self) -> True {
                self.until
            }
        }
    };
}
pub(super) use interval;

/// Two intervals of different owners with an instant in common.
#[derive(Debug)]
pub(super) struct Overlap<'a, I> {
    /// The one that began first.
    pub(super) first: &'a I,
    pub(super) second: &'a I,
    pub(super) from: True,
    pub(super) until: True,
}

impl<I> Overlap<'_, I> {
    pub(super) fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// All overlaps of more than no time, in the order they began. The intervals are sorted by lock and beginning.
pub(super) fn overlaps<I: Interval>(intervals: &[I]) -> Vec<Overlap<'_, I>> {
    debug_assert!(intervals.is_sorted_by_key(|interval| (interval.lock(), interval.from())));
    let mut live: Vec<&I> = Vec::new();
    let mut all = Vec::new();
    for second in intervals {
        live.retain(|first| first.lock() == second.lock() && first.until() > second.from());
        for first in &live {
            let shared = first.mode() == Mode::Shared && second.mode() == Mode::Shared;
            let until = first.until().min(second.until());
            if first.owner() != second.owner() && !shared && second.from() < until {
                all.push(Overlap { first: *first, second, from: second.from(), until });
            }
        }
        live.push(second);
    }
    all
}

/// The longest overlap; the earliest of those that are equally long.
pub(super) fn worst<'o, 'a, I>(overlaps: &'o [Overlap<'a, I>]) -> Option<&'o Overlap<'a, I>> {
    overlaps.iter().rev().max_by_key(|overlap| overlap.length())
}
