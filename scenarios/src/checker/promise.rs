//! What the servers promised: the intervals of true time in which an owner was entitled to a lock.
//!
//! A grant that a node of the authority executed at true instant *t* for a lease *L* is a promise until *t + L* of **true**
//! time. Renewals by the owner itself prolong it, the owner's own release ends it, and nothing else does: a key that is
//! gone early (a clock that jumped, an eviction, a crash, a failover, somebody else's DEL) is a promise broken, not ended.
//!
//! Where a quorum must grant, the promise exists while at least that many groups' promises are live, each shorter than its
//! lease by the drift allowance: that is the validity which the algorithm itself publishes.

use std::{collections::BTreeMap, time::Duration};

use lockstorm_sim::time::True;

use super::overlap::interval;
use crate::history::{Authority, History, Host, Lock, Mode, Owner, Party, What};

/// An owner was entitled to a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) mode: Mode,
    pub(super) from: True,
    /// When it ended; never later than the run.
    pub(super) until: True,
    pub(super) end: PromiseEnd,
    /// The node whose grant began it (the last one that a quorum needed).
    pub(super) node: Host,
    /// How many holds at most at once: the permits of a semaphore, or how deep it was nested.
    pub(super) count: u32,
}

/// What ended a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromiseEnd {
    /// Its owner released it (or so many nodes that no quorum was left).
    Released,
    /// The lease was over.
    LeaseOver,
    /// The run was over first.
    RunOver,
}

interval!(Promise);

/// Whether a command was sent for this owner: it says so, or, where it does not, comes from its client.
pub(super) fn is_own(history: &History, owner: Owner, by: Party) -> bool {
    by.owner.map_or_else(|| history.client_of(owner) == by.client, |named| named == owner)
}

/// What one group has promised one owner and not yet seen the end of.
#[derive(Debug)]
struct Open {
    from: True,
    node: Host,
    mode: Mode,
    count: u32,
    /// Until when, for each nested hold.
    holds: Vec<True>,
}

impl Open {
    fn until(&self) -> True {
        self.holds.iter().copied().max().unwrap_or(self.from)
    }
}

/// All promises of a history, by lock and then by when they began.
pub(super) fn promises(history: &History) -> Vec<Promise> {
    let mut made: BTreeMap<(Lock, Owner), Vec<(usize, Promise)>> = BTreeMap::new();
    let mut open: BTreeMap<(Lock, Owner, usize), Open> = BTreeMap::new();
    let mut close = |(lock, owner, group): (Lock, Owner, usize), state: Open, released: Option<True>| {
        let over = state.until();
        let (until, end) = match released {
            Some(at) if at < over => (at, PromiseEnd::Released),
            _ => (over, PromiseEnd::LeaseOver),
        };
        let Open { from, node, mode, count, .. } = state;
        // Granted and released at one instant (requests that had waited together on a link): nobody held anything.
        if from >= until {
            return;
        }
        let promise = Promise { lock, owner, mode, from, until, end, node, count };
        made.entry((lock, owner)).or_default().push((group, promise));
    };
    for event in &history.events {
        let Some((lock, owner)) = event.what.lock().zip(event.what.owner()) else { continue };
        let authority = &history.lock(lock).authority;
        let Some(group) = authority.group_of(event.host) else { continue };
        let key = (lock, owner, group);
        let at = event.at;
        match &event.what {
            What::Granted { lease_ms, count, mode, .. } => {
                let end = promised(authority, at, *lease_ms);
                if let Some(lapsed) = open.remove_if(&key, |state| state.until() < at) {
                    close(key, lapsed, None);
                }
                let fresh = || Open { from: at, node: event.host, mode: *mode, count: 0, holds: Vec::new() };
                let state = open.entry(key).or_insert_with(fresh);
                // The node says how deep it is: what it no longer counts was lost, not released, and is held anew.
                state.holds.truncate(count.saturating_sub(1) as usize);
                state.holds.push(end);
                state.count = state.count.max(*count);
            }
            What::Extended { by, lease_ms, .. } if is_own(history, owner, *by) => {
                let end = promised(authority, at, *lease_ms);
                let lapsed = open.remove_if(&key, |state| state.until() < at);
                let mode = lapsed.as_ref().map_or(Mode::Exclusive, |state| state.mode);
                if let Some(lapsed) = lapsed {
                    close(key, lapsed, None);
                }
                // A node that extends what true time calls over grants it anew.
                let fresh = || Open { from: at, node: event.host, mode, count: 1, holds: vec![end] };
                let state = open.entry(key).or_insert_with(fresh);
                for hold in &mut state.holds {
                    *hold = end.max(*hold);
                }
            }
            What::Released { by, left, .. } if is_own(history, owner, *by) => {
                if *left == 0 {
                    if let Some(state) = open.remove(&key) {
                        close(key, state, Some(at));
                    }
                } else if let Some(state) = open.get_mut(&key) {
                    state.holds.truncate((*left as usize).max(1));
                }
            }
            _ => {}
        }
    }
    for (key, state) in open {
        close(key, state, None);
    }
    let mut all: Vec<Promise> = made
        .into_iter()
        .flat_map(|((lock, _), parts)| quorum(parts, history.lock(lock).authority.quorum))
        .collect();
    for promise in &mut all {
        if promise.until > history.header.end {
            (promise.until, promise.end) = (history.header.end.max(promise.from), PromiseEnd::RunOver);
        }
    }
    all.sort_by_key(|promise| (promise.lock, promise.from, promise.owner));
    all
}

/// Until when a grant at `at` binds.
fn promised(authority: &Authority, at: True, lease_ms: Option<u64>) -> True {
    lease_ms.map_or(True::MAX, |lease| at + Duration::from_millis(lease.saturating_sub(authority.drift_ms)))
}

/// The intervals in which promises of at least `needed` different groups are live.
fn quorum(parts: Vec<(usize, Promise)>, needed: usize) -> Vec<Promise> {
    if needed <= 1 && parts.iter().all(|(group, _)| *group == parts[0].0) {
        return parts.into_iter().map(|(_, promise)| promise).collect();
    }
    // Ends before beginnings at one instant: a group that grants again just as its promise ends is not two.
    let mut edges: Vec<(True, bool, usize)> = Vec::with_capacity(parts.len() * 2);
    for (at, (_, promise)) in parts.iter().enumerate() {
        edges.push((promise.from, true, at));
        edges.push((promise.until, false, at));
    }
    edges.sort_unstable();
    let (mut live, mut began, mut all) = (0_usize, None, Vec::new());
    for (at, begins, part) in edges {
        let part = &parts[part].1;
        live = if begins { live + 1 } else { live.saturating_sub(1) };
        match began {
            None if live >= needed => began = Some((at, part.node, part.mode)),
            Some((from, node, mode)) if live < needed => {
                let Promise { lock, owner, end, count, .. } = *part;
                all.push(Promise { lock, owner, mode, from, until: at, end, node, count });
                began = None;
            }
            _ => {}
        }
    }
    all
}

/// Takes a state out of the map if it meets a condition.
trait RemoveIf<K, V> {
    fn remove_if(&mut self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V>;
}

impl<K: Ord, V> RemoveIf<K, V> for BTreeMap<K, V> {
    fn remove_if(&mut self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V> {
        if self.get(key).is_some_and(condition) { self.remove(key) } else { None }
    }
}
