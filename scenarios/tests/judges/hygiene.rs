//! The definition of `hygiene`. A key that exists at the end of the run was left behind, unless its
//! lock declares it as lasting, or it belongs to a lock in use. A lock is in use at the end of the
//! run if an owner believes then that it holds it, or a call about it is under way. A key that its
//! lock declares as passing, and that has a TTL, was not left behind if its owner is unknown.
//! Otherwise, of the keys that one owner left of one lock on one node, those were left behind that
//! exceed one and the number of its client's calls about that lock that did not return success.
//!
//! A key with a TTL was not left behind either if a hold of its lock last changed, on the granting
//! nodes, when a node came back with it.
//!
//! A hold is left behind as well if its owner's line of work has ended without giving it back, and
//! the owner renewed it more than a lease after that, without having called or crashed in between.
//! `left_behind` is the longest time from such an end to a renewal.
//!
//! Nothing is judged if no lock was ever granted, all are in use, or the servers were real.

use std::time::Duration;

use lockstorm::judge::history::{Event, EventKind, History, Host, KeyLeft, Life, Lock, Mode, Outcome, Owner};

use crate::{
    Answer,
    past::{believes_at_the_end, calls, given_up, of_all, own, pairs, promised},
};

/// The times from the ends of lines of work to renewals of holds that they did not give back, each
/// with true if it exceeds a lease.
fn renewed_after_the_end(history: &History) -> Vec<(Duration, bool)> {
    let mut renewed = Vec::new();
    for (end, event) in history.events.iter().enumerate() {
        let EventKind::Abandoned { lock, owner } = event.kind else { continue };
        let goes_on = |later: &&Event| match &later.kind {
            EventKind::Abandoned { lock: of, owner: whose } => (*of, *whose) == (lock, owner),
            EventKind::Invoke { lock: of, owner: whose, .. } => (*of, *whose) == (lock, owner),
            EventKind::Life { life: Life::Crashed | Life::Started } => later.host == history.client_of(owner),
            _ => false,
        };
        for later in history.events[end + 1..].iter().take_while(|later| !goes_on(later)) {
            if let EventKind::Extended { lock: of, owner: whose, by, lease_ms, .. } = &later.kind
                && (*of, *whose) == (lock, owner)
                && own(history, owner, *by)
            {
                let after = later.at.since(event.at);
                let lease = lease_ms.map(Duration::from_millis);
                renewed.push((after, lease.is_none_or(|lease| after > lease)));
            }
        }
    }
    renewed
}

pub(crate) fn judge(history: &History) -> Answer {
    let calls = calls(history);
    let in_use = |lock: Lock| {
        let waits = calls.iter().any(|call| call.lock == lock && call.ended.is_none());
        waits
            || pairs(history)
                .iter()
                .any(|(of, owner)| *of == lock && believes_at_the_end(history, lock, *owner))
    };
    let came_back = |lock: Lock| {
        let owners = (0..history.owners.len() as u32).map(Owner);
        let mut holds =
            owners.flat_map(|owner| [Mode::Exclusive, Mode::Shared].map(|mode| (lock, owner, mode)));
        let authority = &history.lock(lock).authority;
        holds.any(|hold| {
            let about =
                |event: &&Event| event.kind.hold() == Some(hold) && authority.group_of(event.host).is_some();
            let last = history.events.iter().rev().find(about);
            last.is_some_and(|event| matches!(event.kind, EventKind::Regained { .. }))
        })
    };
    let lasts = |left: &KeyLeft| history.lock(left.lock).lasting_keys.contains(&left.key);
    let passes = |left: &KeyLeft| {
        let begins_so = history.lock(left.lock).passing_keys.iter().any(|part| left.key.starts_with(&**part));
        begins_so && left.ttl_ms.is_some()
    };
    let (passing, others): (Vec<&KeyLeft>, Vec<&KeyLeft>) = history
        .keys_left
        .iter()
        .filter(|left| !lasts(left) && !in_use(left.lock))
        .filter(|left| left.ttl_ms.is_none() || !came_back(left.lock))
        .partition(|left| passes(left));
    let failed = |lock: Lock, client: Host| {
        let of_client = |owner: Owner| history.client_of(owner) == client;
        let asked = calls.iter().filter(|call| call.lock == lock && of_client(call.owner));
        asked.filter(|call| call.outcome != Some(&Outcome::Ok)).count()
    };
    let mut too_many = 0;
    for (lock, owner) in pairs(history) {
        for node in (0..history.header.hosts.len() as u16).map(Host) {
            let of_owner = |left: &&&KeyLeft| (left.lock, left.owner, left.node) == (lock, Some(owner), node);
            let made = passing.iter().filter(of_owner).count();
            too_many += made.saturating_sub(1 + failed(lock, history.client_of(owner)));
        }
    }
    let nothing = of_all(history, promised).is_empty() || history.header.locks().all(in_use);
    let is_real = history.header.is_real();
    let renewed = renewed_after_the_end(history);
    let word = match others.len() + too_many {
        1.. => "violated",
        0 if renewed.iter().any(|(_, too_late)| *too_late) => "violated",
        0 if given_up(history) || nothing || is_real => "undecided",
        0 => "holds",
    };
    let for_ever = others.iter().filter(|left| left.ttl_ms.is_none()).count();
    let left_behind = renewed.iter().map(|(after, _)| *after).max().unwrap_or_default();
    Answer::of(word)
        .count("left", others.len() + too_many)
        .count("for_ever", for_ever)
        .time("left_behind", left_behind)
}
