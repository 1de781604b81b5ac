//! Instants, lengths and causes as a reader wants them.

use std::time::Duration;

use lockstorm_sim::time::True;

use super::{
    belief::{Belief, BeliefEnd},
    chain,
    promise::{Promise, PromiseEnd},
};
use crate::history::{Call, Event, EventKind, Fault, History, Host, HostKind, Lock, LossCause, Owner, Party};

/// A true instant in seconds, to the millisecond where that is exact enough.
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

/// A length of time as a sentence has it: `870 µs`, `94.1 ms`, `28.999 s`.
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

/// `1 grant`, `3 grants`.
pub(crate) fn many(count: usize, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {one}{s}")
}

/// A promise: owner, begin and end.
pub(super) fn promise(history: &History, promise: &Promise) -> String {
    let owner = history.owner_name(promise.owner);
    let node = history.host_name(promise.node);
    let authority = &history.lock(promise.lock).authority;
    let by = match authority.quorum {
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

/// A belief: owner, begin and end, and its clock.
pub(super) fn belief(history: &History, belief: &Belief) -> String {
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

/// The sender of a command.
pub(super) fn party(history: &History, party: Party) -> String {
    match party.owner {
        Some(owner) => history.owner_name(owner),
        None => history.host_name(party.client).to_owned(),
    }
}

/// How a hold went away, as the end of a sentence that begins with the node.
pub(super) fn vanished(history: &History, node: Host, how: LossCause) -> String {
    let by = |of: Party| party(history, of);
    match how {
        LossCause::Expired => {
            let drift = "its wall clock said that the lease was over";
            format!("{} dropped it because {drift}", history.host_name(node))
        }
        LossCause::Evicted => format!("{} evicted it for memory", history.host_name(node)),
        LossCause::Flushed => format!("{} was flushed", history.host_name(node)),
        LossCause::Deleted(party) => format!("{} deleted it on {}", by(party), history.host_name(node)),
        LossCause::Overwritten(party) => {
            format!("{} wrote over it on {}", by(party), history.host_name(node))
        }
        LossCause::Crash => format!("{} crashed and came back without it", history.host_name(node)),
        LossCause::Failover => format!("{}, now the master, did not have it", history.host_name(node)),
    }
}

/// The reasons why `owner`, holding a lock `since` then, was not the only holder `by` then: in sentences, and as the
/// nearest fault of the history.
///
/// The latest disappearance of its hold comes first, including its own release that the node executed late. Then the relevant
/// faults since the hold began, in order. Of many, the most relevant are listed: first those in force when the hold disappeared, then those
/// in the [chain] that leads to it, and of equals those on the node where it disappeared, on the owner's client, on another of the lock's
/// nodes; at last the latest. `owners` are the holder and who came in between.
pub(super) fn cause(
    history: &History,
    lock: Lock,
    owners: &[Owner],
    since: True,
    by: True,
) -> (Vec<String>, Option<usize>) {
    let owner = owners[0];
    let within = history.events.partition_point(|event| event.at < since)
        ..history.events.partition_point(|event| event.at <= by);
    let authority = &history.lock(lock).authority;
    let gone = history.events[within].iter().rev().find(|event| {
        let ends = match event.kind {
            EventKind::Vanished { .. } => true,
            EventKind::Released { left, .. } => left == 0,
            _ => false,
        };
        let of_hold = event.kind.lock() == Some(lock) && event.kind.owner() == Some(owner);
        ends && of_hold && authority.group_of(event.host).is_some()
    });
    let client = history.client_of(owner);
    // What is done to a Sentinel may replace the lock's master.
    let sentinels: Vec<Host> = history.header.hosts_of(HostKind::Sentinel).collect();
    let is_sentinel = |host: Host| sentinels.contains(&host);
    let near = |fault: &Fault| {
        let on = |host: Host| fault.targets.contains(&host);
        match gone {
            Some(event) if on(event.host) => 3,
            _ if on(client) => 2,
            _ if fault
                .targets
                .iter()
                .any(|host| authority.group_of(*host).is_some() || is_sentinel(*host)) =>
            {
                1
            }
            _ => 0,
        }
    };
    // A fault that is over may still be the cause (a step of a clock is over at once), unless it was before the hold. What Sentinels were
    // made to do goes on: the old master may take writes for long after another one has granted the hold.
    let since_hold = |fault: &Fault| {
        let lasts = fault.targets.iter().any(|host| is_sentinel(*host));
        fault.from <= by && (lasts || fault.until.is_none_or(|until| until >= since))
    };
    let instant = gone.map_or(by, |event| event.at);
    let faults = history.faults.iter().enumerate();
    let faults = faults.filter(|(_, fault)| since_hold(fault) && near(fault) > 0);
    let in_chain = chain::faults(history, lock, owners, by);
    let (told, nearest) = told(faults, instant, |number, fault| (in_chain.contains(&number), near(fault)));
    let mut story: Vec<String> = gone.map(|event| ended(history, owner, event)).into_iter().collect();
    match told {
        Some(faults) => story.push(faults),
        None if gone.is_none() => story.push("No fault was needed.".to_owned()),
        None => {}
    }
    (story, nearest)
}

/// How a hold of an owner ended on a node.
fn ended(history: &History, owner: Owner, event: &Event) -> String {
    let (at, node) = (instant(event.at), history.host_name(event.host));
    match event.kind {
        EventKind::Vanished { how, .. } => format!("At {at} {}.", vanished(history, event.host, how)),
        EventKind::Released { by, .. } if !history.is_own(owner, by) => {
            format!("At {at} {} released it on {node}.", party(history, by))
        }
        _ => {
            let before = history.events.partition_point(|other| other.at <= event.at);
            let asked = history.events[..before].iter().rev().find(|asked| {
                let release = matches!(asked.kind, EventKind::Invoke { call: Call::Release, .. });
                release && (asked.kind.lock(), asked.kind.owner()) == (event.kind.lock(), Some(owner))
            });
            let asked = asked
                .map_or_else(String::new, |call| format!(" that it had asked for at {}", instant(call.at)));
            format!("At {at} {node} executed a release by {} itself{asked}.", history.owner_name(owner))
        }
    }
}

/// All faults that began by then: in a sentence, and the one that matters most to these owners of a lock.
pub(super) fn faults(
    history: &History,
    lock: Lock,
    owners: &[Owner],
    by: True,
) -> (Option<String>, Option<usize>) {
    let involved = |host: &Host| {
        let client = owners.iter().any(|owner| history.client_of(*owner) == *host);
        client || history.lock(lock).authority.group_of(*host).is_some()
    };
    let faults = history.faults.iter().enumerate().filter(|(_, fault)| fault.from <= by);
    told(faults, by, |_, fault| (false, if fault.targets.iter().any(involved) { 2 } else { 1 }))
}

/// Those of these faults that matter most for what happened at an instant, in a sentence and in the order they began, with how
/// many were left out; and the one that matters most.
fn told<'a>(
    faults: impl Iterator<Item = (usize, &'a Fault)>,
    instant: True,
    near: impl Fn(usize, &Fault) -> (bool, u8),
) -> (Option<String>, Option<usize>) {
    let mut faults: Vec<(usize, &Fault)> = faults.collect();
    // What happens at once, a crash or a step of a clock, stays in force.
    let in_force = |fault: &Fault| fault.from <= instant && fault.until.is_none_or(|until| until >= instant);
    faults.sort_by_key(|(number, fault)| {
        let (leads, near) = near(*number, fault);
        std::cmp::Reverse((in_force(fault), leads, near, fault.from))
    });
    let nearest = faults.first().map(|(number, _)| *number);
    let left_out = faults.len().saturating_sub(FAULTS_TOLD);
    faults.truncate(FAULTS_TOLD);
    faults.sort_by_key(|(number, _)| *number);
    let said: Vec<String> =
        faults.iter().map(|(_, fault)| format!("{} {}", fault.words, span(fault))).collect();
    let others = match left_out {
        0 => String::new(),
        others => format!("; and {} that seemed to matter less", many(others, "other")),
    };
    ((!said.is_empty()).then(|| format!("The faults before it: {}{others}.", said.join("; "))), nearest)
}

/// How many faults one explanation lists.
const FAULTS_TOLD: usize = 4;

/// `at 1.000 s`, `from 1.000 s to 2.000 s`, or `from 1.000 s on`.
pub(crate) fn span(fault: &Fault) -> String {
    match fault.until {
        Some(until) if until > fault.from => format!("from {} to {}", instant(fault.from), instant(until)),
        None if fault.lasts => format!("from {} on", instant(fault.from)),
        _ => format!("at {}", instant(fault.from)),
    }
}
