//! The definition of `progress`. An owner wants a lock from its first acquire until one succeeds,
//! through refusals and failures after which it asks again, and at most until its last call is
//! over; a crash ends the want. A lock is stalled while an owner wants it and no owner believes it
//! holds it. `stalled_in_storm` is the longest uninterrupted stall, `stalled` the longest part of
//! one after the storm. The layer is violated iff `stalled` exceeds the bound, or equals it and
//! lasts to the end of the run. It is undecided if the storm never ended, or if no owner wanted a
//! lock after it. It is also undecided if a lock was stalled after the storm for longer than zero,
//! and the run ended then, or no owner reported at the end of the stall or later that it believes
//! it holds the lock: the stall might have continued.
//!
//! A lock never worked if no owner ever reported that it believes it holds it, and all its
//! acquisitions that came back ended with an error, at least one of them before any fault began
//! that could concern it. A fault concerns no call if it has targets, and all of them are clients
//! other than that of the call. Such a lock violates nothing and leaves the layer undecided.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{Event, EventKind, Fault, History, Host, HostKind, Lock, Outcome};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{Asked, Stretch, believed, calls, given_up, pairs},
};

/// The spans in which owners wanted a lock: one for each success, and one for each want without
/// success.
fn wants(history: &History, lock: Lock) -> Vec<(True, True)> {
    let calls = calls(history);
    let mut wants = Vec::new();
    for (_, owner) in pairs(history).into_iter().filter(|(of, _)| *of == lock) {
        let mut first = None;
        let mut acquires = calls.iter().filter(|call| call.is(lock, owner) && call.acquires()).peekable();
        while let Some(call) = acquires.next() {
            let (made, over) = call.times(history);
            let from = *first.get_or_insert(made);
            // A call without an outcome was ended by a crash.
            let asks_again = !matches!(call.outcome, None | Some(Outcome::Ok)) && acquires.peek().is_some();
            if !asks_again {
                wants.push((from, over));
                first = None;
            }
        }
    }
    wants
}

/// The longest spans in which a lock was wanted and no owner believed it held it.
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

/// Returns true if an owner reported at an instant or later that it believes it holds the lock.
fn is_believed_from(history: &History, lock: Lock, at: True) -> bool {
    let believes = |event: &Event| matches!(event.kind, EventKind::Believes { lock: of, .. } if of == lock);
    history.events.iter().any(|event| event.at >= at && believes(event))
}

fn never_worked(history: &History, lock: Lock) -> bool {
    let calls = calls(history);
    let acquires = calls.iter().filter(|call| call.acquires() && call.lock == lock);
    let returned: Vec<_> = acquires.filter_map(|call| Some((call, call.outcome?))).collect();
    let is_client = |host: Host| history.header.hosts[usize::from(host.0)].kind == HostKind::Client;
    let before_faults = |call: &Asked<'_>| {
        let client = history.events[call.made].host;
        let others = |fault: &Fault| fault.targets.iter().all(|host| is_client(*host) && *host != client);
        let concerning = history.faults.iter().filter(|fault| fault.targets.is_empty() || !others(fault));
        concerning.map(|fault| fault.from).all(|from| call.times(history).1 < from)
    };
    !is_believed_from(history, lock, True::ZERO)
        && returned.iter().all(|(_, outcome)| matches!(outcome, Outcome::Failed { .. }))
        && returned.iter().any(|(call, _)| before_faults(call))
}

pub(crate) fn judge(history: &History) -> Answer {
    let header = &history.header;
    let calm = header.calm.unwrap_or(True::MAX);
    let (mut stalled, mut in_storm) = (Duration::ZERO, Duration::ZERO);
    let (mut wanted, mut open, mut too_long, mut set_up) = (false, false, false, false);
    for lock in header.locks() {
        let wants = wants(history, lock);
        wanted |= wants.iter().any(|want| want.1 > calm);
        let never_worked = never_worked(history, lock);
        set_up |= never_worked;
        for (from, until) in stalls(history, lock, &wants) {
            let after = until.since(from.max(calm));
            in_storm = in_storm.max(until.since(from));
            stalled = stalled.max(after);
            if never_worked || after.is_zero() {
                continue;
            }
            let lasts = until >= header.end;
            too_long |= after > header.bounds.progress || (lasts && after == header.bounds.progress);
            open |= lasts || !is_believed_from(history, lock, until);
        }
    }
    let word = match header.calm {
        None => "undecided",
        Some(_) if too_long => "violated",
        Some(_) if given_up(history) || set_up || !wanted || open => "undecided",
        Some(_) => "holds",
    };
    Answer::of(word).time("stalled", stalled).time("stalled_in_storm", in_storm)
}
