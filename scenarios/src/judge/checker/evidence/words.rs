//! Text for findings: instants and lengths, promises, beliefs, losses and faults.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use lockstorm_world::time::True;

use super::{
    belief::{Belief, BeliefEnd},
    chain,
    promise::{Promise, PromiseEnd},
};
use crate::judge::{
    history::{Event, EventKind, Fault, History, Life, LossCause},
    verdict::Witness,
};

/// Formats a true instant in seconds: with milliseconds if that is exact, otherwise with
/// microseconds.
pub(crate) fn instant(at: True) -> String {
    let micros = at.as_micros();
    let (sign, micros) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
    let (secs, rest) = (micros / 1_000_000, micros % 1_000_000);
    if rest % 1_000 == 0 {
        format!("{sign}{secs}.{:03} s", rest / 1_000)
    } else {
        format!("{sign}{secs}.{rest:06} s")
    }
}

/// Formats a length of time: `870 µs`, `94.1 ms`, `28.999 s`.
pub(crate) fn length(length: Duration) -> String {
    let micros = length.as_micros();
    match micros {
        0 => "0 ms".to_owned(),
        1..1_000 => format!("{micros} µs"),
        1_000..1_000_000 if micros.is_multiple_of(1_000) => format!("{} ms", micros / 1_000),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{:03} s", micros / 1_000_000, micros / 1_000 % 1_000),
    }
}

/// Formats a count with its noun: `1 grant`, `3 grants`.
pub fn many(count: usize, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {one}{s}")
}

/// Returns text of at most this number of characters, the last of which is a sign for the part that
/// is left out.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(most.saturating_sub(1)).collect();
    if most > 0 {
        shown.push('…');
    }
    shown
}

/// Describes a promise: owner, beginning and end.
pub(in crate::judge::checker) fn promise(history: &History, promise: &Promise) -> String {
    let owner = history.owner_name(promise.owner);
    let node = history.host_name(promise.node);
    let authority = &history.lock(promise.lock).authority;
    let by = match authority.quorum {
        1 if promise.came_back => format!("{node} told it of the hold that it had come back with"),
        1 => format!("{node} granted it"),
        needed => format!("{needed} nodes (the last was {node}) had granted it"),
    };
    let until = instant(promise.until);
    let end = match promise.end {
        PromiseEnd::Released => format!("released it at {until}"),
        PromiseEnd::LeaseOver => format!("was promised it until {until}"),
        PromiseEnd::RunOver => format!("was still promised it when the run ended at {until}"),
    };
    format!("{owner} got the lock at {}, when {by}, and {end}.", instant(promise.from))
}

/// Describes a belief: owner, beginning, end, and the clock that ended it.
pub(in crate::judge::checker) fn belief(history: &History, belief: &Belief) -> String {
    let owner = history.owner_name(belief.owner);
    let until = instant(belief.until);
    let end = match (belief.end, belief.deadline) {
        (BeliefEnd::OwnClock, Some((since, deadline))) => {
            let clock = history.clock(history.client_of(belief.owner));
            let counted = deadline.nanos.saturating_sub(clock.reading(deadline.clock, since)).max(0);
            let counted = length(Duration::from_nanos(counted.unsigned_abs()));
            let passed = length(belief.until.since(since));
            let truth =
                if counted == passed { String::new() } else { format!(", while {passed} passed in truth") };
            format!(" until {until}: {counted} after {} by its own {}{truth}", instant(since), deadline.clock)
        }
        (BeliefEnd::OwnClock, None) => format!(" until {until}, when its own clock told it so"),
        (BeliefEnd::Released, _) => format!(" until {until}, when it released it"),
        (BeliefEnd::Told, _) => format!(" until {until}, when it was told that it is lost"),
        (BeliefEnd::Crashed, _) => format!(" until {until}, when it crashed"),
        (BeliefEnd::RunOver, None) => format!(" and was told nothing else until the run ended at {until}"),
        (BeliefEnd::RunOver, Some((_, deadline))) => {
            format!(" and still did by its own {} when the run ended at {until}", deadline.clock)
        }
    };
    format!("{owner} believed it held the lock from {}{end}.", instant(belief.from))
}

/// Describes a wrong clock: the time that passed by it, and the true time.
pub(crate) fn shown(history: &History, shown: &chain::Shown) -> String {
    let sign = if shown.passed < 0 { "-" } else { "" };
    let (passed, truth) =
        (length(Duration::from_nanos(shown.passed.unsigned_abs())), length(shown.at.since(shown.since)));
    let of = match shown.of {
        of if of == shown.host => String::new(),
        of => format!(" by that of {}", history.host_name(of)),
    };
    let since = instant(shown.since);
    format!("by its {} {sign}{passed} have passed since {since}{of}, and {truth} in truth", shown.clock)
}

/// Describes the loss of a hold on a node.
pub(in crate::judge::checker) fn vanished(history: &History, event: &Event, how: LossCause) -> String {
    let (at, node) = (instant(event.at), history.host_name(event.host));
    match how {
        LossCause::Expired => {
            format!("At {at} {node} dropped it because its wall clock said that the lease was over.")
        }
        LossCause::Evicted => format!("At {at} {node} evicted it for memory."),
        LossCause::Flushed => format!("At {at} {node} was flushed."),
        LossCause::Deleted(party) => format!("At {at} {} deleted it on {node}.", history.party_name(party)),
        LossCause::Overwritten(party) => {
            format!("At {at} {} wrote over it on {node}.", history.party_name(party))
        }
        LossCause::Crash => match crashed(history, event) {
            Some(crash) if crash < event.at => {
                format!("{node} crashed at {} and came back without it at {at}.", instant(crash))
            }
            Some(_) => format!("At {at} {node} crashed and came back without it."),
            None => format!("At {at} {node} came back from a crash without it."),
        },
        LossCause::Failover => format!("At {at} {node}, now the master, did not have it."),
    }
}

/// Returns the last crash of the event's node up to the event.
fn crashed(history: &History, event: &Event) -> Option<True> {
    let until = history.events.partition_point(|other| other.at <= event.at);
    let crashes = |other: &&Event| {
        other.host == event.host && matches!(other.kind, EventKind::Life { life: Life::Crashed })
    };
    history.events[..until].iter().rev().find(crashes).map(|crash| crash.at)
}

/// Describes a fault and its time.
pub(crate) fn fault(fault: &Fault) -> String {
    format!("{} {}", fault.words, span(fault))
}

/// Formats the time of a fault: `at 1.000 s`, `from 1.000 s to 2.000 s`, or `from 1.000 s on`.
pub(crate) fn span(fault: &Fault) -> String {
    match fault.until {
        Some(until) if until > fault.from => format!("from {} to {}", instant(fault.from), instant(until)),
        None if fault.lasts => format!("from {} on", instant(fault.from)),
        _ => format!("at {}", instant(fault.from)),
    }
}

/// Lists the faults in the chain of a witness in one sentence. If they are too many, faults still
/// in effect at the beginning of the witness take precedence, and then later ones.
pub(in crate::judge::checker) fn faults(
    history: &History,
    in_chain: &BTreeMap<usize, True>,
    witness: &Witness,
) -> String {
    /// The most faults in one sentence.
    const TOLD_MAX: usize = 6;
    if in_chain.is_empty() {
        return match history.faults.iter().filter(|fault| fault.from <= witness.until).count() {
            0 => "No fault was needed.".to_owned(),
            1 => "The fault before it is not in its chain of events.".to_owned(),
            others => format!("None of the {others} faults before it is in its chain of events."),
        };
    }
    let mut told: Vec<usize> = in_chain.keys().copied().collect();
    told.sort_by_key(|number| Reverse((in_chain[number] >= witness.from, *number)));
    let left_out = told.len().saturating_sub(TOLD_MAX);
    told.truncate(TOLD_MAX);
    told.sort_unstable();
    let told: Vec<String> = told.iter().map(|number| fault(&history.faults[*number])).collect();
    let others = if left_out == 0 { String::new() } else { format!("; and {}", many(left_out, "other")) };
    format!("The faults in its chain of events: {}{others}.", told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn text_is_shortened_with_a_sign() {
        let rows = [("lock", 4, "lock"), ("locks", 4, "loc…"), ("äöü", 2, "ä…"), ("a", 0, ""), ("", 3, "")];
        for (text, most, expected) in rows {
            assert_eq!(shortened(text, most), expected);
        }
    }
}
