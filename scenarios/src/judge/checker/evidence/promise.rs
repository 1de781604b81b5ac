//! The servers' promises: the intervals of true time in which an owner was entitled to a lock.
//!
//! A grant that a node of the authority executes at true instant *t* for a lease *L* is a promise
//! until *t + L* of **true** time. The owner's own renewals prolong it, and its own release ends
//! it. Nothing else does: if the key disappears early (a clock jumped, an eviction, a crash, a
//! failover, another client's DEL), the promise is broken, not ended. A release that finds no key
//! ends the promise, too: the promise ends once its owner has begun to release the lock and the
//! node has lost it.
//!
//! A hold that came back with a node (`Regained`) is not a promise at first: its owner has released
//! it, or another owner may hold the lock by now. It becomes a promise when its owner learns of it:
//!
//! * when the node extends it for the owner, until the end of the new lease;
//! * when the owner believes in the hold again, until the end of the lease with which it came back.
//!   This holds only if one group of nodes decides: otherwise another group may have informed the
//!   owner.
//!
//! A nested hold that the node grants above it is a promise, too, but the levels below are not.
//! Levels that came back lie below those that the owner still has: the owner releases its own
//! first. A hold that was lost and comes back within its promise continues that promise, which had
//! not ended.
//!
//! If a quorum must grant, the promise exists while at least that many groups promise, each for
//! less than its lease by the drift allowance. This is the validity that the algorithm itself
//! publishes.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_world::time::True;

use super::interval::interval;
use crate::judge::history::{Authority, EventKind, History, Host, Lock, Mode, Owner, Reason};

/// An interval in which an owner was entitled to a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::judge::checker) struct Promise {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) mode: Mode,
    pub(in crate::judge::checker) from: True,
    /// The end of the promise, not later than the end of the run.
    pub(in crate::judge::checker) until: True,
    pub(in crate::judge::checker) end: PromiseEnd,
    /// The node whose grant began the promise; for a quorum, the node of the last grant needed.
    pub(in crate::judge::checker) node: Host,
    /// True if that node did not grant the hold, but came back with it and informed the owner.
    pub(in crate::judge::checker) came_back: bool,
    /// The node's counts with the instant of each: the permits of a semaphore, or the number of
    /// levels. Empty for a quorum.
    pub(in crate::judge::checker) counts: Vec<(True, u32)>,
}

/// The cause of a promise's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::checker) enum PromiseEnd {
    /// The owner released it. With a quorum: released it on so many nodes that no quorum was left,
    /// even if the node no longer had it.
    Released,
    /// The lease was over.
    LeaseOver,
    /// The run was over first.
    RunOver,
}

interval!(Promise, without_end);

/// A group's promise to an owner, as long as no event has ended it.
#[derive(Debug)]
struct Open {
    from: True,
    node: Host,
    came_back: bool,
    /// The node's counts with the instant of each.
    counts: Vec<(True, u32)>,
    /// The end of each nested hold, the outermost first.
    holds: Vec<True>,
    /// The latest end of the nested holds that have been released.
    ran: True,
}

impl Open {
    fn new(from: True, node: Host) -> Self {
        Self { from, node, came_back: false, counts: vec![(from, 1)], holds: Vec::new(), ran: from }
    }

    fn until(&self) -> True {
        self.holds.iter().copied().max().unwrap_or(self.ran).max(self.ran)
    }

    /// Keeps the `left` outermost holds; the others end at this instant at the latest.
    fn cut(&mut self, left: usize, at: True) {
        let over = self.holds.iter().skip(left).map(|until| at.min(*until));
        self.ran = over.fold(self.ran, True::max);
        self.holds.truncate(left);
    }

    /// The node informs the owner that it has the hold until this instant: prolongs all levels, at
    /// least one.
    fn extend(&mut self, at: True, until: True) {
        self.holds.resize(self.holds.len().max(1), at);
        self.holds.iter_mut().for_each(|hold| *hold = until.max(*hold));
    }
}

/// A hold with which a node came back, and the end of its lease.
#[derive(Debug, Clone, Copy)]
struct Back {
    node: Host,
    until: True,
}

/// Returns all promises of a history, sorted by lock and beginning.
pub(in crate::judge::checker) fn promises(history: &History) -> Vec<Promise> {
    // An owner may hold a lock in both modes; each hold is a promise of its own.
    type Of = (Lock, Owner, Mode);
    let mut made: BTreeMap<Of, Vec<(usize, Promise)>> = BTreeMap::new();
    let mut open: BTreeMap<(Of, usize), Open> = BTreeMap::new();
    let mut counted: BTreeMap<(Of, usize), u32> = BTreeMap::new();
    // The latest number of levels that a node recorded for a hold, promised or not, and the holds
    // that came back and are not promises yet.
    let mut levels: BTreeMap<(Of, usize), u32> = BTreeMap::new();
    let mut back: BTreeMap<(Of, usize), Back> = BTreeMap::new();
    // The holds that their nodes lost since the last grant or extension, and the holds that their
    // owners released since.
    let (mut lost, mut given_back) = (BTreeSet::new(), BTreeSet::new());
    let mut close = |(of, group): (Of, usize), state: Open, released: Option<True>| {
        let over = state.until();
        let (until, end) = match released {
            Some(at) if at < over => (at, PromiseEnd::Released),
            _ => (over, PromiseEnd::LeaseOver),
        };
        let (Open { from, node, came_back, mut counts, .. }, (lock, owner, mode)) = (state, of);
        counts.retain(|(at, _)| *at < until);
        // A grant and a release at one instant (of requests that waited together on a link) are not
        // a hold.
        if from >= until {
            return;
        }
        let promise = Promise { lock, owner, mode, from, until, end, node, came_back, counts };
        made.entry(of).or_default().push((group, promise));
    };
    for event in &history.events {
        let Some(of) = event.kind.hold() else { continue };
        let (lock, owner, _) = of;
        let authority = &history.lock(lock).authority;
        if let EventKind::Disbelieves { why: Reason::Released, .. } = event.kind {
            for key in (0..authority.groups.len()).map(|group| (of, group)) {
                given_back.insert(key);
                if let Some(state) = open.remove_if(&key, |_| lost.contains(&key)) {
                    close(key, state, Some(event.at));
                }
            }
            continue;
        }
        let at = event.at;
        // An owner that believes in a hold again has not released it.
        if let EventKind::Believes { .. } = event.kind {
            (0..authority.groups.len()).for_each(|group| _ = given_back.remove(&(of, group)));
            let key = (of, 0);
            let told = if authority.groups.len() == 1 { back.remove(&key) } else { None };
            if let Some(Back { node, until }) = told.filter(|back| back.until > at) {
                if let Some(lapsed) = open.remove_if(&key, |state| state.until() < at) {
                    close(key, lapsed, None);
                }
                let mut fresh = Open::new(at, node);
                fresh.came_back = true;
                fresh.counts = vec![(at, counted.get(&key).copied().unwrap_or(1))];
                open.entry(key).or_insert(fresh).extend(at, until);
            }
            continue;
        }
        let Some(group) = authority.group_of(event.host) else { continue };
        let key = (of, group);
        match &event.kind {
            EventKind::Granted { lease_ms, count, .. } => {
                lost.remove(&key);
                given_back.remove(&key);
                back.remove(&key);
                levels.insert(key, *count);
                let end = promised(authority, at, *lease_ms);
                if let Some(lapsed) = open.remove_if(&key, |state| state.until() < at) {
                    close(key, lapsed, None);
                }
                let state = open.entry(key).or_insert_with(|| Open::new(at, event.host));
                // The node reports its number of levels. Levels that it no longer counts were lost,
                // not released, and this grant replaces them. Levels that it still counts after the
                // end of their promise are not promised again.
                let outer = count.saturating_sub(1) as usize;
                state.cut(outer, at);
                state.holds.resize(outer, at);
                state.holds.push(end);
                state.counts.push((at, *count));
                counted.insert(key, *count);
            }
            EventKind::Extended { by, lease_ms, .. } if history.is_own(owner, *by) => {
                lost.remove(&key);
                let came_back = back.remove(&key).is_some();
                if came_back {
                    given_back.remove(&key);
                }
                let end = promised(authority, at, *lease_ms);
                let mut fresh = Open::new(at, event.host);
                fresh.came_back = came_back;
                fresh.counts = vec![(at, counted.get(&key).copied().unwrap_or(1))];
                if let Some(lapsed) = open.remove_if(&key, |state| state.until() < at) {
                    close(key, lapsed, None);
                }
                // A node that extends a hold whose promise is over in true time grants it again,
                // with the levels that it counts.
                open.entry(key).or_insert(fresh).extend(at, end);
            }
            EventKind::Regained { lease_ms, count, .. } => {
                lost.remove(&key);
                let more = count.saturating_sub(levels.insert(key, *count).unwrap_or(0));
                if let Some(state) = open.get_mut(&key).filter(|state| state.until() >= at) {
                    state.holds.splice(0..0, (0..more).map(|_| at));
                }
                back.insert(key, Back { node: event.host, until: promised(authority, at, *lease_ms) });
            }
            EventKind::Released { by, left, .. } if history.is_own(owner, *by) => {
                counted.insert(key, *left);
                levels.insert(key, *left);
                if *left == 0 {
                    back.remove(&key);
                }
                if *left == 0 {
                    if let Some(state) = open.remove(&key) {
                        close(key, state, Some(at));
                    }
                } else if let Some(state) = open.get_mut(&key) {
                    state.cut(*left as usize, at);
                    state.counts.push((at, *left));
                }
            }
            // Another owner released it.
            EventKind::Released { left: 0, .. } => _ = back.remove(&key),
            EventKind::Vanished { .. } => {
                back.remove(&key);
                lost.insert(key);
                if let Some(state) = open.remove_if(&key, |_| given_back.contains(&key)) {
                    close(key, state, Some(at));
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
        .flat_map(|((lock, ..), parts)| quorum(parts, history.lock(lock).authority.quorum))
        .collect();
    for promise in &mut all {
        if promise.until > history.header.end {
            (promise.until, promise.end) = (history.header.end, PromiseEnd::RunOver);
        }
    }
    all.retain(|promise| promise.from < promise.until);
    all.sort_by_key(|promise| (promise.lock, promise.from, promise.owner));
    all
}

/// Returns the end of the promise of a grant at `at`.
fn promised(authority: &Authority, at: True, lease_ms: Option<u64>) -> True {
    lease_ms.map_or(True::MAX, |lease| at + authority.drift.promised(lease))
}

/// Returns the intervals in which at least `needed` different groups promise the lock.
fn quorum(parts: Vec<(usize, Promise)>, needed: usize) -> Vec<Promise> {
    if needed <= 1 && parts.iter().all(|(group, _)| *group == parts[0].0) {
        return parts.into_iter().map(|(_, promise)| promise).collect();
    }
    let mut edges: Vec<(True, bool, usize)> = Vec::with_capacity(parts.len() * 2);
    for (at, (_, promise)) in parts.iter().enumerate() {
        edges.push((promise.from, true, at));
        edges.push((promise.until, false, at));
    }
    edges.sort_unstable();
    let (mut live, mut began, mut all) = (0_usize, None, Vec::new());
    // Events of one instant count together: no gap arises if one group grants when another's
    // promise ends.
    for edges in edges.chunk_by(|one, other| one.0 == other.0) {
        let (at, mut ended, mut begun) = (edges[0].0, None, None);
        for (_, begins, part) in edges {
            let part = &parts[*part].1;
            if *begins {
                (live, begun) = (live + 1, Some(part));
            } else {
                (live, ended) = (live.saturating_sub(1), Some(part));
            }
        }
        match (began, begun, ended) {
            (None, Some(part), _) if live >= needed => began = Some((at, part.node, part.mode)),
            (Some((from, node, mode)), _, Some(part)) if live < needed => {
                let Promise { lock, owner, end, .. } = *part;
                let (counts, came_back) = (Vec::new(), false);
                all.push(Promise { lock, owner, mode, from, until: at, end, node, came_back, counts });
                began = None;
            }
            _ => {}
        }
    }
    all
}

/// Removes a value from a map if it meets a condition.
trait RemoveIf<K, V> {
    fn remove_if(&mut self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V>;
}

impl<K: Ord, V> RemoveIf<K, V> for BTreeMap<K, V> {
    fn remove_if(&mut self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V> {
        if self.get(key).is_some_and(condition) { self.remove(key) } else { None }
    }
}
