//! Writes at the resource, and the holds they came of.

use std::collections::BTreeSet;

use lockstorm::judge::history::{Accepted, Event, EventKind, History, Lock, Owner};
use lockstorm_sim::time::True;

use crate::past::{Stretch, believed, ends_belief, excludes, promised, shown};

/// A write that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) lock: Lock,
    pub(crate) owner: Owner,
    pub(crate) token: Option<u64>,
    pub(crate) arrived: True,
    pub(crate) accepted: Accepted,
    /// When the hold began of which it came; `None` if its owner had never had the lock when it
    /// sent it.
    pub(crate) hold: Option<True>,
}

/// What gave an owner a hold, or one more level of it.
struct Grant {
    at: True,
    /// When the hold began of which it is.
    began: True,
    token: Option<u64>,
}

/// What an owner was granted by an instant, in the order in which it was.
///
/// Where one group decides, a hold begins whenever a node counts its first, or when another owner
/// was granted the lock since the owner's last grant; every other grant is of the hold that began
/// last. Of a quorum a hold begins whenever enough nodes have granted it, under no token.
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

/// When an owner learned by an instant that it has a hold, or one more level of it: whenever it
/// believed in more of them than just before, for some time and not only until the instant in which
/// it heard of it.
fn learned(history: &History, lock: Lock, owner: Owner, by: True) -> BTreeSet<True> {
    let mut learned = BTreeSet::new();
    for belief in believed(history, lock, owner) {
        let hold = (lock, owner, belief.mode);
        // What the owner learns in the instant in which it gives the hold up, it has learned if it
        // came first.
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
            // What it has in another mode says nothing of how many levels it has in this one.
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

/// When the hold began of which a write came.
///
/// It is the hold of the latest grant with its token. Where there is none, it is the hold that the
/// owner had learned of last: that of the latest grant since it had learned of the one before, or,
/// if there was none, one that began when it learned of it. An owner that has learned of nothing is
/// taken to know of every grant.
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

/// All writes, in the order they arrived.
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

/// Whether there was a write to a resource that an exclusive lock guards, and more than one owner
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
