//! The definition of `latch`. A latch is closed from when the count of a granting node becomes more
//! than zero until it is zero; its count is the largest one reported in that time. `early` counts
//! the times when it opened although fewer calls than its count can have counted it down since it
//! was closed, and none can have deleted it. It also counts the waits that returned success
//! although the latch was not open at any time of the call. A call that succeeded can have acted
//! from when it was made until it returned; one with an unknown outcome at any later time; one that
//! was refused or has certainly failed, never. `lost` is the largest excess, at any instant at
//! which the latch is closed, of the successful count-downs made since it was closed over the
//! decrease of its count. `kept` is the longest uninterrupted time that a call waited after the
//! storm while the latch was open, `kept_in_storm` the same for the whole run. The layer is
//! violated iff `early` or `lost` is not zero or `kept` exceeds the bound. It is undecided if the
//! storm never ended, or no owner waited.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{Call, EventKind, History, Lock, LockKind, Outcome};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{Asked, calls, given_up},
};

/// The changes of the count, in order, each with the new count.
fn counts(history: &History, lock: Lock) -> Vec<(True, u64)> {
    let groups = &history.lock(lock).authority.groups;
    let events = history.events.iter().filter(|event| groups.iter().any(|group| group.contains(&event.host)));
    let counted = events.filter_map(|event| match event.kind {
        EventKind::Counted { lock: of, left } if of == lock => Some((event.at, left)),
        _ => None,
    });
    counted.collect()
}

/// The last count of the instants for which `by` is true; zero without one.
fn count(counts: &[(True, u64)], by: impl Fn(True) -> bool) -> u64 {
    counts.iter().rev().find(|(at, _)| by(*at)).map_or(0, |(_, left)| *left)
}

fn succeeded(call: &Asked<'_>) -> bool {
    call.outcome == Some(&Outcome::Ok)
}

pub(crate) fn judge(history: &History) -> Answer {
    let header = &history.header;
    let all = calls(history);
    let calm = header.calm.unwrap_or(True::MAX);
    let (mut early, mut lost, mut waits) = (0, 0, 0);
    let (mut kept, mut in_storm) = (Duration::ZERO, Duration::ZERO);
    let mut instants: BTreeSet<True> = history.events.iter().map(|event| event.at).collect();
    instants.extend([True::ZERO, header.end]);
    instants.extend(header.calm);
    let instants: Vec<True> = instants.into_iter().collect();
    for lock in header.locks().filter(|lock| matches!(history.lock(*lock).kind, LockKind::Latch { .. })) {
        let counts = counts(history, lock);
        let calls: Vec<&Asked<'_>> = all.iter().filter(|call| call.lock == lock).collect();
        for (number, (from, first)) in counts.iter().enumerate() {
            if *first == 0 || (number > 0 && counts[number - 1].1 > 0) {
                continue;
            }
            let closed: Vec<u64> =
                counts[number..].iter().map(|(_, left)| *left).take_while(|left| *left > 0).collect();
            let most = closed.iter().copied().max().unwrap_or(0);
            let opened = counts.get(number + closed.len()).map(|(at, _)| *at);
            if let Some(until) = opened {
                let can_have = |call: &&&Asked<'_>| {
                    let (made, over) = call.times(history);
                    made <= until
                        && match call.outcome {
                            Some(Outcome::Ok) => over >= *from,
                            Some(Outcome::Refused | Outcome::Failed { definite: true, .. }) => false,
                            Some(Outcome::Failed { definite: false, .. }) | None => true,
                        }
                };
                let made: Vec<Call> = calls.iter().filter(can_have).map(|call| call.call).collect();
                let down = made.iter().filter(|call| **call == Call::CountDown).count() as u64;
                early += usize::from(down < most && !made.contains(&Call::Delete));
            }
            for instant in
                instants.iter().filter(|at| *from <= **at && opened.is_none_or(|until| **at < until))
            {
                let done = calls.iter().filter(|call| call.call == Call::CountDown && succeeded(call));
                let done = done.filter(|call| {
                    let (made, over) = call.times(history);
                    made > *from && over <= *instant
                });
                let gone = most - count(&counts, |at| at <= *instant);
                lost = lost.max((done.count() as u64).saturating_sub(gone));
            }
        }
        for call in calls.iter().filter(|call| matches!(call.call, Call::Await { .. })) {
            waits += 1;
            let (made, over) = call.times(history);
            let opens = counts.iter().any(|(at, left)| *left == 0 && made <= *at && *at <= over);
            early += usize::from(succeeded(call) && count(&counts, |at| at < made) > 0 && !opens);
            for (begin, longest) in [(True::ZERO, &mut in_storm), (calm, &mut kept)] {
                let mut length = Duration::ZERO;
                for pair in instants.windows(2) {
                    let waiting = pair[0] >= made.max(begin) && pair[1] <= over;
                    let open = count(&counts, |at| at <= pair[0]) == 0;
                    length = if waiting && open { length + pair[1].since(pair[0]) } else { Duration::ZERO };
                    *longest = (*longest).max(length);
                }
            }
        }
    }
    let word = match header.calm {
        _ if early > 0 || lost > 0 || kept > header.bounds.progress => "violated",
        None => "undecided",
        Some(_) if given_up(history) || waits == 0 => "undecided",
        Some(_) => "holds",
    };
    Answer::of(word)
        .count("early", early)
        .count("lost", lost as usize)
        .time("kept", kept)
        .time("kept_in_storm", in_storm)
}
