//! The decision of a layer that is violated if two owners have the lock at one instant.

use std::time::Duration;

use super::{
    belief::Belief,
    interval::{Interval, Overlap, overlaps, worst},
    promise::Promise,
};
use crate::judge::checker::{
    decision::{Case, Decided, Decision},
    evidence::Evidence,
};
use crate::judge::verdict::Measure;

/// The measures of a layer about intervals. In virtual time every overlap is certain.
pub(in crate::judge::checker) const MEASURES: &[(&str, &str)] = &[
    ("overlap", "how long the longest certain overlap lasted"),
    ("times", "how many certain overlaps there were"),
];

/// Two owners that had a lock at one instant, the one that had it first before the other.
pub(in crate::judge::checker) enum Both {
    Promised([Promise; 2]),
    Believed([Belief; 2]),
}

/// The reason why no two owners had a lock at one instant.
pub(in crate::judge::checker) enum Apart {
    /// No owner ever had it.
    Nothing,
    /// Only one owner ever asked for it.
    OneOwner,
    /// This number of intervals do not overlap.
    Intervals(usize),
}

/// Returns the decision of a layer that is violated iff intervals of two owners overlap. Locks with
/// several permits are left to another checker.
pub(in crate::judge::checker) fn judge<I: Interval + Clone>(
    evidence: &Evidence<'_>,
    intervals: &[I],
    both: fn([I; 2]) -> Both,
) -> Decided<Apart, Both> {
    let judged: Vec<I> =
        intervals.iter().filter(|interval| evidence.is_exclusive(interval.lock())).cloned().collect();
    let found = Found::of(evidence, &judged);
    let verdict = match (worst(&found.certain), worst(&found.within)) {
        (Some(overlap), _) => Decision::Violated(case(overlap, both)),
        (None, Some(overlap)) => Decision::Unsure(case(overlap, both)),
        (None, None) => evidence.none_at_once(&judged),
    };
    Decided { verdict, measures: found.measures() }
}

/// Makes a counterexample of an overlap.
pub(in crate::judge::checker) fn case<I: Interval + Clone>(
    overlap: &Overlap<'_, I>,
    both: fn([I; 2]) -> Both,
) -> Case<Both> {
    let Overlap { first, second, from, until } = *overlap;
    let (lock, owners) = (Some(first.lock()), vec![first.owner(), second.owner()]);
    Case { wrong: both([first.clone(), second.clone()]), from, until, lock, owners }
}

/// The overlaps of a history, in the order of their beginnings.
pub(in crate::judge::checker) struct Found<'a, I> {
    pub(in crate::judge::checker) certain: Vec<Overlap<'a, I>>,
    /// The overlaps that may not have happened: the times of a run in real time may be off.
    pub(in crate::judge::checker) within: Vec<Overlap<'a, I>>,
}

impl<'a, I: Interval> Found<'a, I> {
    pub(in crate::judge::checker) fn of(evidence: &Evidence<'_>, intervals: &'a [I]) -> Self {
        let tolerance = evidence.history.header.tolerance();
        let (within, certain) =
            overlaps(intervals).into_iter().partition(|overlap| overlap.is_within(tolerance));
        Found { certain, within }
    }

    pub(in crate::judge::checker) fn measures(&self) -> Vec<Measure> {
        let longest = worst(&self.certain).map_or(Duration::ZERO, Overlap::length);
        vec![Measure::time("overlap", longest), Measure::count("times", self.certain.len() as u64)]
    }
}
