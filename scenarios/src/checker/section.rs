//! Critical sections as the resource saw them: from the grant to the last write that came of it.

use lockstorm_sim::time::True;

use super::{evidence::Evidence, overlap::interval};
use crate::history::{Accepted, Lock, Mode, Owner, What};

/// A write at the resource, with the hold it came of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) token: Option<u64>,
    pub(super) sent: True,
    pub(super) arrived: True,
    pub(super) accepted: Accepted,
    /// When the hold began of which it came: the latest grant, or failing that the latest belief, of its owner before it
    /// was sent. `None`: the owner never held the lock.
    pub(super) since: Option<True>,
}

/// All writes, in the order they arrived.
pub(super) fn writes(evidence: &Evidence<'_>) -> Vec<Write> {
    let mut holds: Vec<(Lock, Owner, True)> =
        evidence.promises.iter().map(|promise| (promise.lock, promise.owner, promise.from)).collect();
    holds.sort_unstable();
    let mut beliefs: Vec<(Lock, Owner, True)> =
        evidence.beliefs.iter().map(|belief| (belief.lock, belief.owner, belief.from)).collect();
    beliefs.sort_unstable();
    let latest = |of: &[(Lock, Owner, True)], lock: Lock, owner: Owner, sent: True| {
        let before = of.partition_point(|hold| *hold <= (lock, owner, sent));
        of[..before].last().filter(|hold| (hold.0, hold.1) == (lock, owner)).map(|hold| hold.2)
    };
    let events = evidence.history.events.iter();
    let mut all: Vec<Write> = events
        .filter_map(|event| match &event.what {
            What::Write { lock, owner, token, sent, accepted } => {
                let since =
                    latest(&holds, *lock, *owner, *sent).or_else(|| latest(&beliefs, *lock, *owner, *sent));
                let (lock, owner, token) = (*lock, *owner, *token);
                Some(Write { lock, owner, token, sent: *sent, arrived: event.at, accepted: *accepted, since })
            }
            _ => None,
        })
        .collect();
    all.sort_by_key(|write| write.arrived);
    all
}

/// What one hold did to the resource: from the grant until its last write had arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) mode: Mode,
    pub(super) from: True,
    pub(super) until: True,
    /// When its last write was sent.
    pub(super) sent: True,
}

interval!(Section);

/// The sections behind these writes, by lock and then by when they began. Who holds one of many permits has none to itself.
pub(super) fn sections(evidence: &Evidence<'_>, writes: &[Write]) -> Vec<Section> {
    let mut all: std::collections::BTreeMap<(Lock, True, Owner), Section> = std::collections::BTreeMap::new();
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

/// Whether writes were put to the test: somebody wrote to what a lock guards that more than one owner had, one at a time.
pub(super) fn tested(evidence: &Evidence<'_>, writes: &[Write]) -> bool {
    let promised = evidence.promises.iter().map(|promise| (promise.lock, promise.owner));
    let believed = evidence.beliefs.iter().map(|belief| (belief.lock, belief.owner));
    let holders: std::collections::BTreeSet<(Lock, Owner)> = promised.chain(believed).collect();
    let contended = |lock: Lock| holders.iter().filter(|(of, _)| *of == lock).count() > 1;
    let written = |lock: Lock| writes.iter().any(|write| write.lock == lock);
    let mut locks = evidence.history.header.locks();
    locks.any(|lock| evidence.is_exclusive(lock) && contended(lock) && written(lock))
}
