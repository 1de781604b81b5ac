//! Progress, as it is defined: an owner wants a lock from the first acquire it makes until one succeeds, through refusals and
//! failures after which it asks again, and no longer than its last call is under way; a crash ends it. A lock is stalled
//! while an owner wants it and no owner believes it holds it. `stalled_in_storm` is the longest it was stalled in one piece,
//! `stalled` the longest of what lies after the storm; the layer is violated iff that is more than the bound. It cannot be
//! said if the storm never ended, if no owner wanted a lock after it, or if a lock was stalled when the run ended, for longer
//! than no time: that might have gone on.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::history::{History, Lock, Outcome};
use lockstorm_sim::time::True;

use crate::{
    Answer,
    past::{Stretch, believed, calls, given_up, pairs},
};

/// From when until when owners wanted a lock, each once per success.
fn wants(history: &History, lock: Lock) -> Vec<(True, True)> {
    let calls = calls(history);
    let mut wants = Vec::new();
    for (_, owner) in pairs(history).into_iter().filter(|(of, _)| *of == lock) {
        let mut first = None;
        let mut acquires = calls.iter().filter(|call| call.is(lock, owner) && call.acquires()).peekable();
        while let Some(call) = acquires.next() {
            let (made, over) = call.times(history);
            let from = *first.get_or_insert(made);
            // A call that ended without an outcome was ended by a crash.
            let asks_again = !matches!(call.outcome, None | Some(Outcome::Ok)) && acquires.peek().is_some();
            if !asks_again {
                wants.push((from, over));
                first = None;
            }
        }
    }
    wants
}

/// The longest pieces in which a lock was wanted and no owner believed it held it.
fn stalls(history: &History, lock: Lock, wants: &[(True, True)]) -> Vec<(True, True)> {
    let owners = pairs(history).into_iter().filter(|(of, _)| *of == lock);
    let beliefs: Vec<Stretch> = owners.flat_map(|(_, owner)| believed(history, lock, owner)).collect();
    let mut instants: BTreeSet<True> = wants.iter().flat_map(|(from, until)| [*from, *until]).collect();
    instants.extend(beliefs.iter().flat_map(|belief| [belief.from, belief.until]));
    let instants: Vec<True> = instants.into_iter().collect();
    let mut stalls: Vec<(True, True)> = Vec::new();
    for pair in instants.windows(2) {
        let (from, until) = (pair[0], pair[1]);
        let wanted = wants.iter().any(|want| want.0 <= from && from < want.1);
        let held = beliefs.iter().any(|belief| belief.from <= from && from < belief.until);
        match stalls.last_mut() {
            _ if !wanted || held => {}
            Some(last) if last.1 == from => last.1 = until,
            _ => stalls.push((from, until)),
        }
    }
    stalls
}

pub(crate) fn judge(history: &History) -> Answer {
    let header = &history.header;
    let calm = header.calm.unwrap_or(True::MAX);
    let (mut stalled, mut in_storm, mut wanted, mut open) = (Duration::ZERO, Duration::ZERO, false, false);
    for lock in header.locks() {
        let wants = wants(history, lock);
        wanted |= wants.iter().any(|want| want.1 > calm);
        for (from, until) in stalls(history, lock, &wants) {
            let after = until.since(from.max(calm));
            in_storm = in_storm.max(until.since(from));
            stalled = stalled.max(after);
            open |= until >= header.end && !after.is_zero();
        }
    }
    let word = match header.calm {
        None => "undecided",
        Some(_) if stalled > header.bounds.progress => "violated",
        Some(_) if given_up(history) || !wanted || open => "undecided",
        Some(_) => "holds",
    };
    Answer::of(word).time("stalled", stalled).time("stalled_in_storm", in_storm)
}
