//! Wants: the time in which an owner wants a lock and does not have it, from its first acquire until one succeeds, through refusals and
//! failures after which it tries again.

use std::collections::BTreeMap;

use lockstorm_sim::time::True;

use super::evidence::Evidence;
use crate::history::{Lock, Outcome, Owner};

/// The time in which an owner wanted a lock and did not have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Want {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) from: True,
    pub(super) until: True,
}

/// All of them.
pub(super) fn wants(evidence: &Evidence<'_>) -> Vec<Want> {
    let history = evidence.history;
    let mut open: BTreeMap<(Lock, Owner), (True, True)> = BTreeMap::new();
    let mut all = Vec::new();
    for call in evidence.calls.iter().filter(|call| call.is_acquire()) {
        let key = (call.lock, call.owner);
        let from = open.remove(&key).map_or(call.from, |(from, _)| from);
        let until = call.over.unwrap_or(history.header.end);
        match call.returned {
            // After a failure it asks again, after a success or a crash it wants the lock anew.
            Some((_, outcome)) if *outcome != Outcome::Ok => {
                open.insert(key, (from, until));
            }
            _ => all.push(Want { lock: call.lock, owner: call.owner, from, until }),
        }
    }
    all.extend(open.into_iter().map(|((lock, owner), (from, until))| Want { lock, owner, from, until }));
    all
}
