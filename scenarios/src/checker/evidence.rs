//! What every checker starts from, worked out once per history: who was promised what, who believed what, who asked when.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_sim::time::True;

use super::{
    belief::{Belief, beliefs},
    promise::{Promise, promises},
};
use crate::history::{Call, Ended, History, Host, Lock, Op, Outcome, Owner, What};

/// One call of a client, from the moment it was made until it came back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) host: Host,
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) call: Call,
    pub(super) from: True,
    /// When it came back and with what; `None` if it never did.
    pub(super) returned: Option<(True, &'a Outcome)>,
}

impl Asked<'_> {
    pub(super) fn is_acquire(&self) -> bool {
        matches!(self.call, Call::Acquire { .. })
    }
}

/// A history with what every checker starts from.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The history.
    pub history: &'a History,
    pub(super) promises: Vec<Promise>,
    pub(super) beliefs: Vec<Belief>,
    /// Every call, in the order they were made.
    pub(super) calls: Vec<Asked<'a>>,
}

impl<'a> Evidence<'a> {
    /// Works it out: linear in the events, but for sorting.
    pub fn of(history: &'a History) -> Self {
        Self { history, promises: promises(history), beliefs: beliefs(history), calls: calls(history) }
    }

    /// Who ever asked for a lock, held it or thought so.
    pub(super) fn contenders(&self, lock: Lock) -> BTreeSet<Owner> {
        let asked = self.calls.iter().filter(|call| call.is_acquire()).map(|call| (call.lock, call.owner));
        let held = self.promises.iter().map(|promise| (promise.lock, promise.owner));
        let believed = self.beliefs.iter().map(|belief| (belief.lock, belief.owner));
        asked.chain(held).chain(believed).filter(|(of, _)| *of == lock).map(|(_, owner)| owner).collect()
    }

    /// Why a run that showed nothing wrong still proves nothing: it did not get to its end.
    pub(super) fn given_up(&self) -> Option<String> {
        match &self.history.header.ended {
            Ended::Complete => None,
            Ended::Early(why) => Some(format!("the run was given up: {why}")),
        }
    }
}

fn calls(history: &History) -> Vec<Asked<'_>> {
    let mut calls: Vec<Asked<'_>> = Vec::new();
    let mut open: BTreeMap<Op, usize> = BTreeMap::new();
    for event in &history.events {
        match &event.what {
            What::Invoke { op, lock, owner, call } => {
                open.insert(*op, calls.len());
                let (host, from) = (event.host, event.at);
                calls.push(Asked { host, lock: *lock, owner: *owner, call: *call, from, returned: None });
            }
            What::Return { op, outcome } => {
                if let Some(call) = open.remove(op) {
                    calls[call].returned = Some((event.at, outcome));
                }
            }
            _ => {}
        }
    }
    calls
}
