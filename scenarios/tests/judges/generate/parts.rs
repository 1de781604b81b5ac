//! The state of the servers and clients of a plausible history, and the requests between them.

use std::collections::BTreeMap;

use lockstorm::judge::history::{Host, Lock, Mode, Op, Owner};
use lockstorm_world::time::True;

/// The grants that count together: those of a limiter, or those of one of its clients.
pub(super) type Counted = (Lock, Option<Host>);

/// A lock's key on one node.
#[derive(Debug, Clone, Default)]
pub(super) struct Key {
    pub(super) holders: BTreeMap<Owner, u32>,
    pub(super) mode: Mode,
    /// By the node's wall clock, in milliseconds.
    pub(super) expires_ms: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) down: bool,
    pub(super) keys: BTreeMap<Lock, Key>,
    /// The keys at the time of the last grant: a node that has forgotten the rest comes back with
    /// these.
    pub(super) stored: BTreeMap<Lock, Key>,
    pub(super) queues: BTreeMap<Lock, Vec<Owner>>,
    pub(super) token: u64,
    /// The remaining count of each latch.
    pub(super) counts: BTreeMap<Lock, u64>,
    /// The grants of each rate limiter: time by the wall clock, and number of permits.
    pub(super) granted: BTreeMap<Counted, Vec<(i64, u32)>>,
}

impl Node {
    /// The first lock in whose queue the owner is.
    pub(super) fn queued_for(&self, owner: Owner) -> Option<Lock> {
        self.queues.iter().find(|(_, queue)| queue.contains(&owner)).map(|(lock, _)| *lock)
    }

    /// Executes a request on a latch. Returns the new count if it changed, and true on success. An
    /// open latch is neither counted down nor deleted, and a closed one is not set.
    pub(super) fn counts(&mut self, lock: Lock, count: u32, wants: Wants) -> (Option<u64>, bool) {
        let left = self.counts.entry(lock).or_insert(0);
        let before = *left;
        match wants {
            Wants::Await => return (None, before == 0),
            Wants::Down => *left = before.saturating_sub(1),
            Wants::Open => *left = 0,
            _ if before == 0 => *left = count.into(),
            _ => {}
        }
        ((*left != before).then_some(*left), before > 0)
    }

    /// Grants permits of a rate limiter if the window has room for them.
    pub(super) fn takes(
        &mut self,
        counted: Counted,
        (rate, window_ms): (u32, u64),
        now: i64,
        permits: u32,
    ) -> bool {
        let granted = self.granted.entry(counted).or_default();
        granted.retain(|(at, _)| *at + window_ms as i64 >= now);
        let fits = granted.iter().map(|(_, permits)| permits).sum::<u32>() + permits <= rate;
        if fits {
            granted.push((now, permits));
        }
        fits
    }
}

/// A request of a client to a group of nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) op: Option<Op>,
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) group: usize,
    pub(super) wants: Wants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Acquire(Option<u64>),
    Release,
    Renew(Option<u64>),
    /// For a latch: wait until it is open, count it down, delete it.
    Await,
    Down,
    Open,
    /// For a rate limiter: this number of permits.
    Take(u32),
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) op: Op,
    pub(super) lock: Lock,
    pub(super) wants: Wants,
    pub(super) since: True,
    /// The number of groups that granted or released it, and the token that came with it.
    pub(super) done: usize,
    pub(super) token: Option<u64>,
    pub(super) depth: u32,
}

/// A write on its way to the resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) token: Option<u64>,
    pub(super) sent: True,
}
