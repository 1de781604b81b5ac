//! The finding of a layer that is violated if two owners have the lock at one instant.

use std::time::Duration;

use super::{
    authority,
    belief::Belief,
    ending::ending,
    interval::{Interval, Overlap, overlaps, worst},
    promise::Promise,
    words,
};
use crate::judge::checker::{Checker, evidence::Evidence};
use crate::judge::{
    history::History,
    verdict::{Finding, Measure, Verdict, Witness, lateness},
};

/// The measures of a layer about intervals. In virtual time every overlap is certain.
pub(in crate::judge::checker) const MEASURES: &[(&str, &str)] = &[
    ("overlap", "how long the longest certain overlap lasted"),
    ("times", "how many certain overlaps there were"),
];

/// A layer's words for its intervals.
pub(in crate::judge::checker) struct Wording<I> {
    /// The name of one interval.
    thing: &'static str,
    /// The predicate of two owners that overlap.
    both: &'static str,
    /// Describes the beginning and end of an interval.
    words: fn(&History, &I) -> String,
}

pub(in crate::judge::checker) const PROMISED: Wording<Promise> =
    Wording { thing: "promise", both: "were both promised", words: words::promise };

pub(in crate::judge::checker) const BELIEVED: Wording<Belief> =
    Wording { thing: "belief", both: "both believed they held", words: words::belief };

/// Returns the finding of a layer that is violated iff intervals of two owners overlap. Locks with
/// several permits are left to another checker. `nothing` is the text if there is no interval.
pub(in crate::judge::checker) fn judge<I: Interval + Clone>(
    checker: &Checker,
    evidence: &Evidence<'_>,
    intervals: &[I],
    wording: &Wording<I>,
    nothing: &str,
) -> Finding {
    let judged: Vec<I> =
        intervals.iter().filter(|interval| evidence.is_exclusive(interval.lock())).cloned().collect();
    let found = Found::of(evidence, &judged);
    let verdict = match (worst(&found.certain), worst(&found.within)) {
        (Some(overlap), _) => Verdict::Violated { witness: witness(evidence.history, overlap, wording) },
        (None, Some(overlap)) => undecided(evidence, &witness(evidence.history, overlap, wording)),
        (None, None) => evidence.none_at_once(&judged, wording.thing, nothing),
    };
    checker.finding(verdict, found.measures())
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

/// Returns the verdict about two owners that may or may not have had the lock at the same time.
pub(in crate::judge::checker) fn undecided(evidence: &Evidence<'_>, witness: &Witness) -> Verdict {
    let late = lateness(evidence.history.header.tolerance());
    Verdict::undecided(format!(
        "{} It would not be so, had one of the two been earlier or later by {late}.",
        witness.summary
    ))
}

pub(in crate::judge::checker) fn witness<I: Interval>(
    history: &History,
    overlap: &Overlap<'_, I>,
    wording: &Wording<I>,
) -> Witness {
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
    let mut story = vec![(wording.words)(history, first)];
    story.extend(ending(history, lock, &owners, first.from(), *from));
    story.extend(authority::two_masters_in_words(history, lock, first.from(), *until));
    story.push((wording.words)(history, second));
    Witness { summary, story, from: *from, until: *until, lock: Some(lock), owners }
}
