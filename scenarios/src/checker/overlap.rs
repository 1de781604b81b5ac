//! Two owners at one instant: the one sweep behind every question about mutual exclusion.

use std::time::Duration;

use lockstorm_sim::time::True;

use super::{Checker, evidence::Evidence, words};
use crate::{
    history::{History, Lock, Mode, Owner},
    verdict::{Finding, Measure, Verdict, Witness},
};

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
        impl $crate::checker::overlap::Interval for $kind {
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

/// What a layer about intervals measures.
pub(super) const MEASURES: &[(&str, &str)] =
    &[("overlap", "how long the longest overlap lasted"), ("times", "how many overlaps there were")];

/// How a layer speaks of its intervals.
pub(super) struct Wording<I> {
    /// What one is called, and what is said when there is none.
    pub(super) thing: &'static str,
    pub(super) nothing: String,
    /// What two owners did at once with the lock.
    pub(super) both: &'static str,
    /// How one began and ended.
    pub(super) words: fn(&History, &I) -> String,
}

/// What a layer finds that is violated iff intervals of two owners overlap. Of permits many may be out at once: that is another
/// checker's question.
pub(super) fn judge<I: Interval + Clone>(
    checker: &Checker,
    evidence: &Evidence<'_>,
    intervals: &[I],
    wording: &Wording<I>,
) -> Finding {
    let judged: Vec<I> =
        intervals.iter().filter(|interval| evidence.is_exclusive(interval.lock())).cloned().collect();
    let found = overlaps(&judged);
    let longest = worst(&found);
    let verdict = match longest {
        Some(overlap) => Verdict::Violated { witness: witness(evidence.history, overlap, wording) },
        None => evidence.none_at_once(&judged, wording.thing, &wording.nothing),
    };
    let measures = vec![
        Measure::time("overlap", longest.map_or(Duration::ZERO, Overlap::length)),
        Measure::count("times", found.len() as u64),
    ];
    checker.finding(verdict, measures)
}

fn witness<I: Interval>(history: &History, overlap: &Overlap<'_, I>, wording: &Wording<I>) -> Witness {
    let Overlap { first, second, from, until } = overlap;
    let lock = first.lock();
    let owners = vec![first.owner(), second.owner()];
    let summary = format!(
        "{} and {} {} `{}` for {}, from {} to {}.",
        history.owner_name(first.owner()),
        history.owner_name(second.owner()),
        wording.both,
        history.lock(lock).name,
        words::length(overlap.length()),
        words::instant(*from),
        words::instant(*until)
    );
    let (cause, fault) = words::cause(history, lock, first.owner(), first.from(), *from);
    let mut story = vec![(wording.words)(history, first)];
    story.extend(cause);
    story.push((wording.words)(history, second));
    Witness { summary, story, from: *from, until: *until, lock: Some(lock), owners, fault }
}
