//! Wants: the time in which an owner wants a lock and does not have it. A want lasts from the first
//! acquire until one succeeds, through refusals and failures after which the owner tries again.

use std::collections::BTreeMap;

use lockstorm_world::time::True;

use crate::judge::checker::evidence::Evidence;
use crate::judge::history::{Lock, Outcome, Owner};

/// The time in which an owner wanted a lock and did not have it.
#[derive(Debug)]
pub(in crate::judge::checker) struct Want {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) from: True,
    pub(in crate::judge::checker) until: True,
    /// True if it ended because the owner got the lock.
    pub(in crate::judge::checker) granted: bool,
    /// The calls of the want, as indexes into [`Evidence::calls`].
    pub(in crate::judge::checker) calls: Vec<usize>,
}

/// Returns all wants of a history.
pub(in crate::judge::checker) fn wants(evidence: &Evidence<'_>) -> Vec<Want> {
    let mut open: BTreeMap<(Lock, Owner), Want> = BTreeMap::new();
    let mut all = Vec::new();
    for (at, call) in evidence.calls.iter().enumerate().filter(|(_, call)| call.is_acquire()) {
        let (lock, owner, from) = (call.lock, call.owner, call.from);
        let first = || Want { lock, owner, from, until: from, granted: false, calls: Vec::new() };
        let mut want = open.remove(&(lock, owner)).unwrap_or_else(first);
        want.until = call.over.unwrap_or(evidence.history.header.end);
        want.calls.push(at);
        want.granted = matches!(call.returned, Some((_, Outcome::Ok)));
        // After a failure or a refusal the want continues with the next call. After a success or a
        // crash a new want begins.
        if call.returned.is_some() && !want.granted {
            open.insert((lock, owner), want);
        } else {
            all.push(want);
        }
    }
    all.extend(open.into_values());
    all
}
