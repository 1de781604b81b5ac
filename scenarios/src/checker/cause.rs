//! Why the holder of a lock was not the only one: how its hold ended, and the faults that may have led to it, in sentences.

use std::ops::Range;

use lockstorm_sim::time::True;

use super::{
    authority::{is_replicated, services},
    chain, words,
};
use crate::history::{Call, Event, EventKind, Fault, History, Host, HostKind, Lock, LossCause, Owner};

/// The reasons why `owner`, holding a lock `since` then, was not the only holder `by` then: in sentences, and as the
/// nearest fault of the history.
///
/// The latest disappearance of its hold comes first, including its own release that the node executed late; before it, where another node of
/// its group was the master then, what became of the hold there, and after it the promotion. Then the relevant
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
    let ends = |number: &usize| {
        let event = &history.events[*number];
        let of_hold = event.kind.lock() == Some(lock) && event.kind.owner() == Some(owner);
        chain::ends(event) && of_hold && authority.group_of(event.host).is_some()
    };
    let last = within.clone().rev().find(ends);
    let gone = last.map(|number| &history.events[number]);
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
    let mut story: Vec<String> = Vec::new();
    if let Some(last) = last {
        let before = within
            .clone()
            .rev()
            .find(|number| *number < last && ends(number) && was_elsewhere(history, lock, *number, last));
        let ends = before.into_iter().chain([last]);
        let ends = ends.map(|number| (number, ended(history, owner, &history.events[number])));
        let first = before.unwrap_or(last);
        let promotion = owners.get(1).and_then(|other| promoted(history, lock, *other, first..within.end));
        let mut sentences: Vec<(usize, String)> = ends.chain(promotion).collect();
        sentences.sort();
        story.extend(sentences.into_iter().map(|(_, sentence)| sentence));
    }
    match told {
        Some(faults) => story.push(faults),
        None if gone.is_none() => story.push("No fault was needed.".to_owned()),
        None => {}
    }
    (story, nearest)
}

/// Whether a hold ended on a master that was none of the node on which it ended for the last time: what is told of that alone would leave
/// open what the other one, which had replaced it or was replaced by it, had done.
fn was_elsewhere(history: &History, lock: Lock, number: usize, last: usize) -> bool {
    let host = history.events[number].host;
    is_replicated(history, lock)
        && host != history.events[last].host
        && history.was_master(lock, host, number)
}

/// That the node on which another owner has its hold by then was promoted meanwhile, if it has not said so itself: when the hold was gone
/// before, the node had none to lose.
fn promoted(history: &History, lock: Lock, other: Owner, within: Range<usize>) -> Option<(usize, String)> {
    let grants = |event: &Event| {
        let of_other = event.kind.lock() == Some(lock) && event.kind.owner() == Some(other);
        of_other && matches!(event.kind, EventKind::Granted { .. })
    };
    let number = history.events[..within.end].iter().rposition(grants)?;
    let node = history.events[number].host;
    let service = services(history, lock).into_iter().find(|one| one.node == node && one.is_on(number))?;
    let promotion =
        service.promoted.filter(|promotion| within.contains(promotion) && *promotion > within.start)?;
    let says_so = |event: &Event| {
        let lost = matches!(event.kind, EventKind::Vanished { how: LossCause::Failover, .. });
        lost && event.host == node && event.kind.lock() == Some(lock)
    };
    let said = history.events[within].iter().any(says_so);
    let at = words::instant(history.events[promotion].at);
    (!said).then(|| (promotion, format!("At {at} {} was promoted.", history.host_name(node))))
}

/// How a hold of an owner ended on a node.
fn ended(history: &History, owner: Owner, event: &Event) -> String {
    let (at, node) = (words::instant(event.at), history.host_name(event.host));
    match event.kind {
        EventKind::Vanished { how, .. } => format!("At {at} {}.", words::vanished(history, event.host, how)),
        EventKind::Released { by, .. } if !history.is_own(owner, by) => {
            format!("At {at} {} released it on {node}.", words::party(history, by))
        }
        _ => {
            let before = history.events.partition_point(|other| other.at <= event.at);
            let asked = history.events[..before].iter().rev().find(|asked| {
                let release = matches!(asked.kind, EventKind::Invoke { call: Call::Release, .. });
                release && (asked.kind.lock(), asked.kind.owner()) == (event.kind.lock(), Some(owner))
            });
            let asked = asked.map_or_else(String::new, |call| {
                format!(" that it had asked for at {}", words::instant(call.at))
            });
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
        faults.iter().map(|(_, fault)| format!("{} {}", fault.words, words::span(fault))).collect();
    let others = match left_out {
        0 => String::new(),
        others => format!("; and {} that seemed to matter less", words::many(others, "other")),
    };
    ((!said.is_empty()).then(|| format!("The faults before it: {}{others}.", said.join("; "))), nearest)
}

/// How many faults one explanation lists.
const FAULTS_TOLD: usize = 4;
