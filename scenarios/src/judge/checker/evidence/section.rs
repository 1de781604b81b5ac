//! Critical sections as the resource saw them: from the grant to the last write under it.

use std::collections::BTreeMap;

use lockstorm_world::time::True;

use super::interval::interval;
use crate::judge::checker::evidence::Evidence;
use crate::judge::history::{Accepted, EventKind, Lock, Mode, Owner};

/// A write at the resource, with the hold it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::checker) struct Write {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) token: Option<u64>,
    pub(in crate::judge::checker) sent: True,
    pub(in crate::judge::checker) arrived: True,
    pub(in crate::judge::checker) accepted: Accepted,
    /// The beginning of the write's hold. `None`: the owner never held the lock.
    pub(in crate::judge::checker) since: Option<True>,
}

/// A grant of a hold, or of one more level of it.
#[derive(Debug, Clone, Copy)]
struct Grant {
    lock: Lock,
    owner: Owner,
    at: True,
    /// The beginning of the hold: this grant, or the outermost one if this one is nested.
    since: True,
    token: Option<u64>,
}

/// Returns all grants, sorted by lock, owner and time.
///
/// For a quorum, a grant is the last one that it needed. For a single authority, each grant counts
/// by itself, instead of the promise. A node that lost a hold and grants the lock again to the same
/// owner begins a new hold, although the older promise still runs. A promoted replica that has not
/// received a release also begins a new hold, even if it counts one more level of the old one, once
/// another owner has been granted the lock in between.
fn grants(evidence: &Evidence<'_>) -> Vec<Grant> {
    let history = evidence.history;
    let mut begun: BTreeMap<(Lock, Owner), True> = BTreeMap::new();
    let mut latest: BTreeMap<Lock, Owner> = BTreeMap::new();
    let mut all = Vec::new();
    for event in &history.events {
        let EventKind::Granted { lock, owner, count, token, .. } = event.kind else { continue };
        let authority = &history.lock(lock).authority;
        if authority.quorum > 1 || authority.group_of(event.host).is_none() {
            continue;
        }
        let at = event.at;
        let since = begun.entry((lock, owner)).or_insert(at);
        if latest.insert(lock, owner) != Some(owner) || count <= 1 {
            *since = at;
        }
        all.push(Grant { lock, owner, at, since: *since, token });
    }
    let by_quorum =
        evidence.promises.iter().filter(|promise| history.lock(promise.lock).authority.quorum > 1);
    all.extend(by_quorum.map(|promise| {
        let (at, since) = (promise.from, promise.from);
        Grant { lock: promise.lock, owner: promise.owner, at, since, token: None }
    }));
    all.sort_by_key(|grant| (grant.lock, grant.owner, grant.at));
    all
}

/// The grants, and the instants at which owners learned of them.
struct Holds {
    grants: Vec<Grant>,
    /// The instants at which each owner learned of an acquisition, in order.
    learned: BTreeMap<(Lock, Owner), Vec<True>>,
}

impl Holds {
    fn of(evidence: &Evidence<'_>) -> Self {
        let mut learned: BTreeMap<(Lock, Owner), Vec<True>> = BTreeMap::new();
        for belief in &evidence.beliefs {
            learned.entry((belief.lock, belief.owner)).or_default().extend(&belief.acquired);
        }
        learned.values_mut().for_each(Vec::dedup);
        Self { grants: grants(evidence), learned }
    }

    /// Returns the beginning of the hold to which a write belongs that was sent at `sent`.
    ///
    /// It is the hold of the grant that its token names. Without a token, or if no grant to the
    /// owner has that token, it is the newest hold that the owner had learned of: the latest grant
    /// before it learned. If no grant was added since it learned of the hold before, its belief
    /// itself counts as the hold. An owner that never believed anything counts as knowing every
    /// grant.
    fn began(&self, lock: Lock, owner: Owner, token: Option<u64>, sent: True) -> Option<True> {
        let first = self.grants.partition_point(|grant| (grant.lock, grant.owner) < (lock, owner));
        let last =
            self.grants.partition_point(|grant| (grant.lock, grant.owner, grant.at) <= (lock, owner, sent));
        let granted = &self.grants[first..last];
        if let Some(named) = granted.iter().rev().find(|grant| token.is_some() && grant.token == token) {
            return Some(named.since);
        }
        let learned = self.learned.get(&(lock, owner)).map_or(&[][..], Vec::as_slice);
        let (known, before) = match learned[..learned.partition_point(|at| *at <= sent)] {
            [] => return granted.last().map(|grant| grant.since),
            [known] => (known, None),
            [.., before, known] => (known, Some(before)),
        };
        let meant = granted.iter().rev().find(|grant| grant.at <= known);
        let meant = meant.filter(|grant| before.is_none_or(|before| grant.at > before));
        Some(meant.map_or(known, |grant| grant.since))
    }
}

/// Returns all writes, in the order of their arrival.
pub(in crate::judge::checker) fn writes(evidence: &Evidence<'_>) -> Vec<Write> {
    let holds = Holds::of(evidence);
    let events = evidence.history.events.iter();
    let mut all: Vec<Write> = events
        .filter_map(|event| match &event.kind {
            EventKind::Write { lock, owner, token, sent, accepted } => {
                let since = holds.began(*lock, *owner, *token, *sent);
                let (lock, owner, token) = (*lock, *owner, *token);
                Some(Write { lock, owner, token, sent: *sent, arrived: event.at, accepted: *accepted, since })
            }
            _ => None,
        })
        .collect();
    all.sort_by_key(|write| write.arrived);
    all
}

/// One hold's effect on the resource: from the grant until its last write arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::judge::checker) struct Section {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) mode: Mode,
    pub(in crate::judge::checker) from: True,
    pub(in crate::judge::checker) until: True,
    /// The instant at which its last write was sent.
    pub(in crate::judge::checker) sent: True,
}

interval!(Section, with_end);

/// Returns the sections of these writes, sorted by lock and beginning. A holder of one of several
/// permits has no critical section.
pub(in crate::judge::checker) fn sections(evidence: &Evidence<'_>, writes: &[Write]) -> Vec<Section> {
    let mut all: BTreeMap<(Lock, True, Owner), Section> = BTreeMap::new();
    for write in writes.iter().filter(|write| evidence.is_exclusive(write.lock)) {
        let Write { lock, owner, sent, arrived, .. } = *write;
        let Some(from) = write.since else { continue };
        let mode = Mode::Exclusive;
        let section = all.entry((lock, from, owner)).or_insert(Section {
            lock,
            owner,
            mode,
            from,
            until: arrived,
            sent,
        });
        (section.until, section.sent) = (arrived, sent);
    }
    all.into_values().collect()
}

/// Returns true if the question arose: there was a write under a lock that one owner at a time may
/// hold, and more than one owner had that lock.
pub(in crate::judge::checker) fn tested(evidence: &Evidence<'_>, writes: &[Write]) -> bool {
    let promised = evidence.promises.iter().map(|promise| (promise.lock, promise.owner));
    let believed = evidence.beliefs.iter().map(|belief| (belief.lock, belief.owner));
    let holders: std::collections::BTreeSet<(Lock, Owner)> = promised.chain(believed).collect();
    let contended = |lock: Lock| holders.iter().filter(|(of, _)| *of == lock).count() > 1;
    let written = |lock: Lock| writes.iter().any(|write| write.lock == lock);
    let mut locks = evidence.history.header.locks();
    locks.any(|lock| evidence.is_exclusive(lock) && contended(lock) && written(lock))
}
