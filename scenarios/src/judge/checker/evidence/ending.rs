//! The end of an owner's hold.

use std::ops::Range;

use lockstorm_world::time::True;

use super::{
    authority::{is_replicated, services},
    chain,
};
use crate::judge::history::{Call, Event, EventKind, History, Lock, LossCause, Owner, Party};

/// An event by which a hold ended.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge::checker) enum EndedBy {
    /// A node lost it.
    Lost(LossCause),
    /// A node released it for another party.
    ReleasedBy(Party),
    /// A node released it for its owner, which had asked for that at this instant.
    Released(Option<True>),
    /// The node that granted the lock to another owner was promoted.
    Promoted,
}

/// Returns the end of the hold that the first of these owners had of a lock, within `since` and
/// `by`: each event with its part in it. Empty if it did not end.
///
/// The latest end is reported, including the owner's own release that the node executed late. If
/// another node of the group was a master when the hold ended there, that earlier end comes first.
/// The promotion of the node that granted the second owner its hold follows in the order of time.
pub(in crate::judge::checker) fn ending<'h>(
    history: &'h History,
    lock: Lock,
    owners: &[Owner],
    since: True,
    by: True,
) -> Vec<(&'h Event, EndedBy)> {
    let owner = owners[0];
    let within = history.events.partition_point(|event| event.at < since)
        ..history.events.partition_point(|event| event.at <= by);
    let authority = &history.lock(lock).authority;
    let ends = |number: &usize| {
        let event = &history.events[*number];
        let of_hold = event.kind.lock() == Some(lock) && event.kind.owner() == Some(owner);
        chain::ends(event) && of_hold && authority.group_of(event.host).is_some()
    };
    let Some(last) = within.clone().rev().find(ends) else { return Vec::new() };
    let before = within
        .clone()
        .rev()
        .find(|number| *number < last && ends(number) && was_elsewhere(history, lock, *number, last));
    let first = before.unwrap_or(last);
    let ends = before.into_iter().chain([last]);
    let ends = ends.map(|number| (number, ended(history, owner, &history.events[number])));
    let promotion = owners.get(1).and_then(|other| promoted(history, lock, *other, first..within.end));
    let mut all: Vec<(usize, EndedBy)> = ends.chain(promotion).collect();
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(number, ended)| (&history.events[number], ended)).collect()
}

/// Returns true if a hold ended on a master other than the node of its last end. The last end alone
/// would not show what that other master did, which had replaced the node or was replaced by it.
fn was_elsewhere(history: &History, lock: Lock, number: usize, last: usize) -> bool {
    let host = history.events[number].host;
    is_replicated(history, lock)
        && host != history.events[last].host
        && history.was_master(lock, host, number)
}

/// Returns the promotion, within these events, of the node on which another owner has its hold.
/// `None` if the node recorded the loss itself; if the hold was gone before, the node had none to
/// lose.
fn promoted(history: &History, lock: Lock, other: Owner, within: Range<usize>) -> Option<(usize, EndedBy)> {
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
    (!said).then_some((promotion, EndedBy::Promoted))
}

fn ended(history: &History, owner: Owner, event: &Event) -> EndedBy {
    match event.kind {
        EventKind::Vanished { how, .. } => EndedBy::Lost(how),
        EventKind::Released { by, .. } if !history.is_own(owner, by) => EndedBy::ReleasedBy(by),
        _ => {
            let before = history.events.partition_point(|other| other.at <= event.at);
            let asked = history.events[..before].iter().rev().find(|asked| {
                let release = matches!(asked.kind, EventKind::Invoke { call: Call::Release, .. });
                release && (asked.kind.lock(), asked.kind.owner()) == (event.kind.lock(), Some(owner))
            });
            EndedBy::Released(asked.map(|call| call.at))
        }
    }
}
