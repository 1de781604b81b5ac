//! Two owners at one instant: the finding of a layer that is violated by it.

use std::time::Duration;

use super::{
    Checker, authority,
    belief::Belief,
    cause,
    evidence::Evidence,
    interval::{Interval, Overlap, overlaps, worst},
    promise::Promise,
    words,
};
use crate::{
    history::History,
    verdict::{Finding, Measure, Verdict, Witness},
};

/// What a layer about intervals measures.
pub(super) const MEASURES: &[(&str, &str)] =
    &[("overlap", "how long the longest overlap lasted"), ("times", "how many overlaps there were")];

/// How a layer speaks of its intervals.
pub(super) struct Wording<I> {
    /// What one is called.
    thing: &'static str,
    /// What two owners did at once with the lock.
    both: &'static str,
    /// How one began and ended.
    words: fn(&History, &I) -> String,
}

pub(super) const PROMISED: Wording<Promise> =
    Wording { thing: "promise", both: "were both promised", words: words::promise };

pub(super) const BELIEVED: Wording<Belief> =
    Wording { thing: "belief", both: "both believed they held", words: words::belief };

/// What a layer finds that is violated iff intervals of two owners overlap. Of permits many may be out at once: that is another
/// checker's question. `nothing` is said when there is no interval.
pub(super) fn judge<I: Interval + Clone>(
    checker: &Checker,
    evidence: &Evidence<'_>,
    intervals: &[I],
    wording: &Wording<I>,
    nothing: &str,
) -> Finding {
    let judged: Vec<I> =
        intervals.iter().filter(|interval| evidence.is_exclusive(interval.lock())).cloned().collect();
    let found = overlaps(&judged);
    let longest = worst(&found);
    let verdict = match longest {
        Some(overlap) => Verdict::Violated { witness: witness(evidence.history, overlap, wording) },
        None => evidence.none_at_once(&judged, wording.thing, nothing),
    };
    let measures = vec![
        Measure::time("overlap", longest.map_or(Duration::ZERO, Overlap::length)),
        Measure::count("times", found.len() as u64),
    ];
    checker.finding(verdict, measures)
}

pub(super) fn witness<I: Interval>(
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
    let (cause, fault) = cause::cause(history, lock, &owners, first.from(), *from);
    let mut story = vec![(wording.words)(history, first)];
    story.extend(cause);
    story.extend(authority::two_masters_in_words(history, lock, first.from(), *until));
    story.push((wording.words)(history, second));
    Witness { summary, story, from: *from, until: *until, lock: Some(lock), owners, fault }
}
