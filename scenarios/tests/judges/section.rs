//! Writes at the resource, and the holds they came of.

use lockstorm::history::{Accepted, History, Lock, Owner, What};
use lockstorm_sim::time::True;

use crate::past::{believed, excludes, promised};

/// A write that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) lock: Lock,
    pub(crate) owner: Owner,
    pub(crate) token: Option<u64>,
    pub(crate) arrived: True,
    pub(crate) accepted: Accepted,
    /// When the hold began of which it came; `None` if its owner had never had the lock when it sent it.
    pub(crate) hold: Option<True>,
}

/// When the hold began that an owner had at an instant, or had last: the latest that it was granted by then, or that it
/// believed in if it was granted none.
fn hold(history: &History, lock: Lock, owner: Owner, sent: True) -> Option<True> {
    let latest = |begun: Vec<True>| begun.into_iter().filter(|at| *at <= sent).max();
    latest(begun(history, lock, owner))
        .or_else(|| latest(believed(history, lock, owner).iter().map(|belief| belief.from).collect()))
}

/// When an owner's holds began: where one group decides, whenever a node counted its first; of a quorum, whenever enough
/// nodes had granted it.
fn begun(history: &History, lock: Lock, owner: Owner) -> Vec<True> {
    promised(history, lock, owner).iter().map(|promise| promise.from).collect()
}

/// All writes, in the order they arrived.
pub(crate) fn writes(history: &History) -> Vec<Write> {
    let mut writes = Vec::new();
    for event in &history.events {
        let What::Write { lock, owner, token, sent, accepted } = &event.what else { continue };
        let (lock, owner, token, arrived, accepted) = (*lock, *owner, *token, event.at, *accepted);
        let hold = hold(history, lock, owner, *sent);
        writes.push(Write { lock, owner, token, arrived, accepted, hold });
    }
    writes
}

/// Whether somebody wrote to what a lock guards that excludes others, and more than one owner had it.
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
