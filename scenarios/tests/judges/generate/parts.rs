//! What the servers and clients of a plausible history keep in mind, and what is on its way between them.

use std::collections::BTreeMap;

use lockstorm::history::{Lock, Mode, Op, Owner};
use lockstorm_sim::time::True;

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
    pub(super) queues: BTreeMap<Lock, Vec<Owner>>,
    pub(super) token: u64,
    /// How many times each latch is still to be counted down.
    pub(super) counts: BTreeMap<Lock, u64>,
    /// The grants of each rate limiter: when by the wall clock, and of how many permits.
    pub(super) granted: BTreeMap<Lock, Vec<(i64, u32)>>,
}

/// What a client sent to a group of nodes.
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
    /// Of a latch: that it is open, that it is counted down, that it is deleted.
    Await,
    Down,
    Open,
    /// Of a rate limiter: so many permits.
    Take(u32),
}

/// A call that has not come back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) op: Op,
    pub(super) lock: Lock,
    pub(super) wants: Wants,
    pub(super) since: True,
    /// How many groups granted it, or released, and the token that came with it.
    pub(super) done: usize,
    pub(super) token: Option<u64>,
    pub(super) depth: u32,
}

/// A write that is on its way to the resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) token: Option<u64>,
    pub(super) sent: True,
}
