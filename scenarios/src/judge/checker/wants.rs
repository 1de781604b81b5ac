//! Wants: the time in which an owner wants a lock and does not have it, from its first acquire
//! until one succeeds, through refusals and failures after which it tries again.

use std::collections::BTreeMap;

use lockstorm_sim::time::True;

use super::evidence::Evidence;
use crate::judge::history::{Lock, Outcome, Owner};

/// The time in which an owner wanted a lock and did not have it.
#[derive(Debug)]
pub(super) struct Want {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) from: True,
    pub(super) until: True,
    /// Whether it ended because the owner got the lock.
    pub(super) granted: bool,
    /// The calls it is made of, by their places in [`Evidence::calls`].
    pub(super) calls: Vec<usize>,
}

/// All of them.
pub(super) fn wants(evidence: &Evidence<'_>) -> Vec<Want> {
    let mut open: BTreeMap<(Lock, Owner), Want> = BTreeMap::new();
    let mut all = Vec::new();
    for (at, call) in evidence.calls.iter().enumerate().filter(|(_, call)| call.is_acquire()) {
        let (lock, owner, from) = (call.lock, call.owner, call.from);
        let first = || Want { lock, owner, from, until: from, granted: false, calls: Vec::new() };
        let mut want = open.remove(&(lock, owner)).unwrap_or_else(first);
        want.until = call.over.unwrap_or(evidence.history.header.end);
        want.calls.push(at);
        want.granted = matches!(call.returned, Some((_, Outcome::Ok)));
        // After a failure it asks again, after a success or a crash it wants the lock anew.
        if call.returned.is_some() && !want.granted {
            open.insert((lock, owner), want);
        } else {
            all.push(want);
        }
    }
    all.extend(open.into_values());
    all
}
