//! Writes at the resource, and the hold that each write belongs to.

use std::collections::BTreeSet;

use lockstorm::judge::history::{Accepted, Event, EventKind, History, Lock, Owner};
use lockstorm_world::time::True;

use crate::past::{Stretch, believed, ends_belief, excludes, promised, shown};

/// A write that arrived at the resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) lock: Lock,
    pub(crate) owner: Owner,
    pub(crate) token: Option<u64>,
    pub(crate) arrived: True,
    pub(crate) accepted: Accepted,
    /// The begin of the hold that the write belongs to; `None` if its owner had never had the lock
    /// when it sent the write.
    pub(crate) hold: Option<True>,
}

/// A grant of a hold to an owner, or of one more level of it.
struct Grant {
    at: True,
    /// The begin of the hold that the grant belongs to.
    began: True,
    token: Option<u64>,
}

/// The grants of an owner up to an instant, in order.
///
/// If one group decides, a hold begins when a node counts its first level, or when another owner
/// was granted the lock since the owner's last grant; every other grant belongs to the hold that
/// began last. With a quorum a hold begins whenever enough nodes have granted it, without a token.
fn granted(history: &History, lock: Lock, owner: Owner, by: True) -> Vec<Grant> {
    let authority = &history.lock(lock).authority;
    if authority.quorum > 1 {
        let promised = promised(history, lock, owner).into_iter().filter(|promise| promise.from <= by);
        let of = |promise: Stretch| Grant { at: promise.from, began: promise.from, token: None };
        return promised.map(of).collect();
    }
    let mut grants: Vec<Grant> = Vec::new();
    let mut before = None;
    for event in history.events.iter().filter(|event| event.at <= by) {
        let EventKind::Granted { lock: of, owner: whose, count, token, .. } = &event.kind else { continue };
        if *of != lock || !authority.groups.iter().any(|group| group.contains(&event.host)) {
            continue;
        }
        let other = before.replace(*whose) != Some(owner);
        if *whose != owner {
            continue;
        }
        let outer = grants.last().filter(|_| *count > 1 && !other).map(|grant| grant.began);
        grants.push(Grant { at: event.at, began: outer.unwrap_or(event.at), token: *token });
    }
    grants
}

/// The instants, up to `by`, at which an owner learned of a hold or of one more level of it. It
/// learns whenever it reports more levels than just before, and believes in them for some time, not
/// only until the instant of the report.
fn learned(history: &History, lock: Lock, owner: Owner, by: True) -> BTreeSet<True> {
    let mut learned = BTreeSet::new();
    for belief in believed(history, lock, owner) {
        let hold = (lock, owner, belief.mode);
        // At the end of the belief, a report counts if it comes before the event that gives the
        // hold up.
        let ends = |event: &Event| event.at == belief.until && ends_belief(history, hold, event);
        let end = history.events.iter().position(ends).unwrap_or(usize::MAX);
        let mut had = 0;
        for (number, event) in history.events.iter().enumerate() {
            let is_within = belief.from <= event.at
                && (event.at < belief.until || event.at == belief.until && number < end && end < usize::MAX);
            if !is_within {
                continue;
            }
            let EventKind::Believes { count, until, .. } = &event.kind else { continue };
            // A belief in another mode says nothing about the levels in this one.
            if event.kind.hold() != Some(hold) {
                continue;
            }
            let is_over = until.is_some_and(|until| shown(history, event.host, until, event.at) <= event.at);
            if *count > had && !is_over {
                learned.insert(event.at);
            }
            had = *count;
        }
    }
    learned.retain(|at| *at <= by);
    learned
}

/// The begin of the hold that a write belongs to.
///
/// That is the hold of the latest grant with the write's token. Without such a grant, it is the
/// hold that the owner learned of last: the hold of the latest grant between its last two
/// learnings, or, without a grant there, a hold that began at the last learning. An owner that has
/// learned of nothing counts as knowing of every grant.
fn hold(history: &History, lock: Lock, owner: Owner, token: Option<u64>, sent: True) -> Option<True> {
    let granted = granted(history, lock, owner, sent);
    let named = granted.iter().rfind(|grant| token.is_some() && grant.token == token);
    if let Some(named) = named {
        return Some(named.began);
    }
    let mut learned: Vec<True> = learned(history, lock, owner, sent).into_iter().collect();
    let Some(known) = learned.pop() else { return granted.last().map(|grant| grant.began) };
    let before = learned.pop();
    let mut meant =
        granted.iter().filter(|grant| grant.at <= known && before.is_none_or(|before| before < grant.at));
    Some(meant.next_back().map_or(known, |grant| grant.began))
}

/// All writes, in order of their arrival.
pub(crate) fn writes(history: &History) -> Vec<Write> {
    let mut writes = Vec::new();
    for event in &history.events {
        let EventKind::Write { lock, owner, token, sent, accepted } = &event.kind else { continue };
        let (lock, owner, token, arrived, accepted) = (*lock, *owner, *token, event.at, *accepted);
        let hold = hold(history, lock, owner, token, *sent);
        writes.push(Write { lock, owner, token, arrived, accepted, hold });
    }
    writes
}

/// Returns true if a resource guarded by an exclusive lock was written to, and more than one owner
/// had the lock.
pub(crate) fn tested(history: &History, writes: &[Write]) -> bool {
    let had = |lock: Lock, owner: Owner| {
        !promised(history, lock, owner).is_empty() || !believed(history, lock, owner).is_empty()
    };
    let owners = || (0..history.owners.len() as u32).map(Owner);
    history.header.locks().any(|lock| {
        excludes(history, lock)
            && writes.iter().any(|write| write.lock == lock)
            && owners().filter(|owner| had(lock, *owner)).count() > 1
    })
}
