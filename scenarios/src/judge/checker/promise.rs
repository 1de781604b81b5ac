//! What the servers promised: the intervals of true time in which an owner was entitled to a lock.
//!
//! A grant that a node of the authority executed at true instant *t* for a lease *L* is a promise
//! until *t + L* of **true** time. Renewals by the owner itself prolong it, the owner's own release
//! ends it, and nothing else does: a key that is gone early (a clock that jumped, an eviction, a
//! crash, a failover, another client's DEL) is a promise broken, not ended. A release that finds no
//! key ends the promise, too: it is over once its owner has begun to give the lock back and the
//! node has lost it.
//!
//! A hold that came back with a node (`Regained`) is a promise to no owner: its owner has given it
//! back, or another one may have the lock by now. It is one from when its owner is told that it has
//! it: the node extends it for the owner, or, where one group of nodes decides and so no other can
//! have told it, the owner believes in it anew. From an extension on it lasts as that says, and
//! from a belief on until the end of the lease that the node came back with. So is a nested hold a
//! promise that the node grants on top of it, and what is below is none. Levels that came back are
//! below those that the owner still has: it gives back its own first. A hold that was lost and
//! comes back within its promise is that promise, which had not ended.
//!
//! Where a quorum must grant, the promise exists while at least that many groups' promises are
//! live, each shorter than its own lease by the drift allowance: that is the validity which the
//! algorithm itself publishes.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_sim::time::True;

use super::interval::interval;
use crate::judge::history::{Authority, EventKind, History, Host, Lock, Mode, Owner, Reason};

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
    /// Whether that node granted nothing, but told the owner of a hold that it had come back with.
    pub(super) came_back: bool,
    /// How many holds since when, as the node counted: the permits of a semaphore, or how deep it
    /// is nested; of a quorum nothing.
    pub(super) counts: Vec<(True, u32)>,
}

/// What ended a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromiseEnd {
    /// Its owner released it (or so many nodes that no quorum was left), whether or not the node
    /// still had it.
    Released,
    /// The lease was over.
    LeaseOver,
    /// The run was over first.
    RunOver,
}

interval!(Promise, without_end);

/// What one group has promised one owner and not yet seen the end of.
#[derive(Debug)]
struct Open {
    from: True,
    node: Host,
    came_back: bool,
    /// How many holds since when.
    counts: Vec<(True, u32)>,
    /// Until when, for each nested hold, the outermost first.
    holds: Vec<True>,
    /// Until when nested holds ran that have been given back since.
    ran: True,
}

impl Open {
    fn new(from: True, node: Host) -> Self {
        Self { from, node, came_back: false, counts: vec![(from, 1)], holds: Vec::new(), ran: from }
    }

    fn until(&self) -> True {
        self.holds.iter().copied().max().unwrap_or(self.ran).max(self.ran)
    }

    /// Only so many holds are left at this instant.
    fn cut(&mut self, left: usize, at: True) {
        let over = self.holds.iter().skip(left).map(|until| at.min(*until));
        self.ran = over.fold(self.ran, True::max);
        self.holds.truncate(left);
    }

    /// The node tells the owner that it has the hold until then.
    fn extend(&mut self, at: True, until: True) {
        self.holds.resize(self.holds.len().max(1), at);
        self.holds.iter_mut().for_each(|hold| *hold = until.max(*hold));
    }
}

/// A hold that a node has come back with, and until when by the lease that it has.
#[derive(Debug, Clone, Copy)]
struct Back {
    node: Host,
    until: True,
}

/// All promises of a history, by lock and then by when they began.
pub(super) fn promises(history: &History) -> Vec<Promise> {
    // An owner may have a lock in both modes: each is a promise of its own.
    type Of = (Lock, Owner, Mode);
    let mut made: BTreeMap<Of, Vec<(usize, Promise)>> = BTreeMap::new();
    let mut open: BTreeMap<(Of, usize), Open> = BTreeMap::new();
    let mut counted: BTreeMap<(Of, usize), u32> = BTreeMap::new();
    // As many levels as a node has said of a hold, whether or not there is a promise of them, and
    // what came back and is none yet.
    let mut levels: BTreeMap<(Of, usize), u32> = BTreeMap::new();
    let mut back: BTreeMap<(Of, usize), Back> = BTreeMap::new();
    // The holds that their nodes have lost since they were last granted or prolonged, and those
    // that their owners have given back since.
    let (mut lost, mut given_back) = (BTreeSet::new(), BTreeSet::new());
    let mut close = |(of, group): (Of, usize), state: Open, released: Option<True>| {
        let over = state.until();
        let (until, end) = match released {
            Some(at) if at < over => (at, PromiseEnd::Released),
            _ => (over, PromiseEnd::LeaseOver),
        };
        let (Open { from, node, came_back, mut counts, .. }, (lock, owner, mode)) = (state, of);
        counts.retain(|(at, _)| *at < until);
        // Granted and released at one instant (requests that had waited together on a link): there
        // was no hold.
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
        // An owner that believes anew has not given back what it believes in.
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
                // The node says how deep it is: what it no longer counts was lost, not released,
                // and is held anew. What it still counts although the promise was over is promised
                // no more.
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
                // A node that extends what true time calls over grants it anew, as often as it
                // counts.
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
            // Another one released it.
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

/// Until when a grant at `at` binds.
fn promised(authority: &Authority, at: True, lease_ms: Option<u64>) -> True {
    lease_ms.map_or(True::MAX, |lease| at + authority.drift.promised(lease))
}

/// The intervals in which promises of at least `needed` different groups are live.
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
    // What happens at one instant happens at once: a group that grants as another's promise ends
    // leaves no gap.
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

/// Takes a state out of the map if it meets a condition.
trait RemoveIf<K, V> {
    fn remove_if(&mut self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V>;
}

impl<K: Ord, V> RemoveIf<K, V> for BTreeMap<K, V> {
    fn remove_if(&mut self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V> {
        if self.get(key).is_some_and(condition) { self.remove(key) } else { None }
    }
}
