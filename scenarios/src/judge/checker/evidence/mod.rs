//! The common basis of all checkers, computed once per history: the promises, the beliefs and the
//! calls of owners.

pub(in crate::judge::checker) mod authority;
pub(in crate::judge::checker) mod belief;
pub(crate) mod chain;
pub(in crate::judge::checker) mod double_grant;
pub(in crate::judge::checker) mod ending;
pub(in crate::judge::checker) mod holds;
pub(in crate::judge::checker) mod interval;
pub(in crate::judge::checker) mod overlap;
pub(in crate::judge::checker) mod promise;
pub(in crate::judge::checker) mod section;
pub(in crate::judge::checker) mod wants;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_world::time::True;

use self::{
    authority::{Service, is_replicated, services, two_masters},
    belief::{Belief, beliefs},
    interval::{Interval, overlaps},
    overlap::Apart,
    promise::{Promise, promises},
};
use super::decision::Decision;
use crate::judge::history::{Call, Ended, EventKind, History, Host, Life, Lock, Op, Outcome, Owner};

/// A call of a client, from its invocation until its return.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge::checker) struct Asked<'a> {
    pub(in crate::judge::checker) host: Host,
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) call: Call,
    pub(in crate::judge::checker) from: True,
    /// The instant and the result of its return; `None` if it never returned.
    pub(in crate::judge::checker) returned: Option<(True, &'a Outcome)>,
    /// The end of the call: its return, or the crash or restart of its client, which never sees the
    /// reply.
    pub(in crate::judge::checker) over: Option<True>,
}

impl Asked<'_> {
    pub(in crate::judge::checker) fn is_acquire(&self) -> bool {
        matches!(self.call, Call::Acquire { .. })
    }

    /// Returns true if the call asks for a lock or for permits.
    pub(in crate::judge::checker) fn asks(&self) -> bool {
        self.is_acquire() || matches!(self.call, Call::Take { .. })
    }

    /// Returns true if the call asked for a lock and returned an error.
    pub(in crate::judge::checker) fn is_failed_acquire(&self) -> bool {
        self.is_acquire() && matches!(self.returned, Some((_, Outcome::Failed { .. })))
    }

    pub(in crate::judge::checker) fn is_release(&self) -> bool {
        self.call == Call::Release
    }
}

/// A stretch of true time in which an owner had a lock, by promise or belief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The lock that was promised or believed held.
    pub lock: Lock,
    /// The owner to which the nodes promised the lock, or which believed in its hold.
    pub owner: Owner,
    /// The start: the grant of the lock, or the event with which the owner's belief began.
    pub from: True,
    /// The end, in true time.
    pub until: True,
    /// A sentence about its beginning and end.
    pub words: String,
}

/// A history with the data that all checkers share.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The history from which everything else is computed.
    pub history: &'a History,
    pub(in crate::judge::checker) promises: Vec<Promise>,
    pub(in crate::judge::checker) beliefs: Vec<Belief>,
    /// All calls, in the order of their invocations.
    pub(in crate::judge::checker) calls: Vec<Asked<'a>>,
}

impl<'a> Evidence<'a> {
    /// Computes the evidence; linear in the events, except for sorting.
    pub fn of(history: &'a History) -> Self {
        Self { history, promises: promises(history), beliefs: beliefs(history), calls: calls(history) }
    }

    /// Returns the servers' promises, for display.
    pub fn promised(&self) -> Vec<Stretch> {
        let held = |promise: &Promise| Stretch {
            lock: promise.lock,
            owner: promise.owner,
            from: promise.from,
            until: promise.until,
            words: words::promise(self.history, promise),
        };
        self.promises.iter().map(held).collect()
    }

    /// Returns the clients' beliefs, for display.
    pub fn believed(&self) -> Vec<Stretch> {
        let held = |belief: &Belief| Stretch {
            lock: belief.lock,
            owner: belief.owner,
            from: belief.from,
            until: belief.until,
            words: words::belief(self.history, belief),
        };
        self.beliefs.iter().map(held).collect()
    }

    /// Returns the masters of a replicated lock with the beginning and end of each, for display.
    pub fn mastered(&self, lock: Lock) -> Vec<(Host, True, True)> {
        if !is_replicated(self.history, lock) {
            return Vec::new();
        }
        let span = |service: &Service| (service.node, service.begin(self.history), service.end(self.history));
        services(self.history, lock).iter().map(span).filter(|(_, from, until)| from < until).collect()
    }

    /// Returns the stretches in which a replicated lock had two masters.
    pub fn two_masters(&self, lock: Lock) -> Vec<(True, True)> {
        two_masters(self.history, lock).iter().map(|two| (two.from, two.until)).collect()
    }

    /// Returns the stretches in which two owners were certainly promised a lock that only one may
    /// hold.
    pub fn promises_at_once(&self) -> Vec<(True, True)> {
        self.at_once(&self.promises)
    }

    /// Returns the stretches in which two owners certainly believed to hold one exclusive lock.
    pub fn beliefs_at_once(&self) -> Vec<(True, True)> {
        self.at_once(&self.beliefs)
    }

    fn at_once<I: Interval>(&self, intervals: &[I]) -> Vec<(True, True)> {
        let tolerance = self.history.header.tolerance();
        let all = overlaps(intervals).into_iter().filter(|overlap| !overlap.is_within(tolerance));
        let all = all.filter(|overlap| self.is_exclusive(overlap.first.lock()));
        all.map(|overlap| (overlap.from, overlap.until)).collect()
    }

    /// Returns true if the lock has one owner at a time, or several that all read.
    pub(in crate::judge::checker) fn is_exclusive(&self, lock: Lock) -> bool {
        self.history.lock(lock).kind.is_exclusive()
    }

    /// Returns the owners that ever tried to acquire a lock, held it or believed so.
    pub(in crate::judge::checker) fn contenders(&self, lock: Lock) -> BTreeSet<Owner> {
        let asked = self.calls.iter().filter(|call| call.is_acquire()).map(|call| (call.lock, call.owner));
        let held = self.promises.iter().map(|promise| (promise.lock, promise.owner));
        let believed = self.beliefs.iter().map(|belief| (belief.lock, belief.owner));
        asked.chain(held).chain(believed).filter(|(of, _)| *of == lock).map(|(_, owner)| owner).collect()
    }

    /// Returns the decision if intervals do not overlap. It is *holds* if the question arose: for
    /// one of the locks with an interval, at least two owners asked for it, held it or believed so.
    pub(in crate::judge::checker) fn none_at_once<I: Interval, W>(&self, seen: &[I]) -> Decision<Apart, W> {
        let had: BTreeSet<Lock> = seen.iter().map(Interval::lock).collect();
        if self.is_given_up() {
            Decision::GivenUp
        } else if seen.is_empty() {
            Decision::Undecided(Apart::Nothing)
        } else if had.into_iter().any(|lock| self.contenders(lock).len() > 1) {
            Decision::Holds(Apart::Intervals(seen.len()))
        } else {
            Decision::Undecided(Apart::OneOwner)
        }
    }

    /// Returns true if a run without a violation proves nothing: it did not reach its end.
    pub(in crate::judge::checker) fn is_given_up(&self) -> bool {
        self.history.header.ended != Ended::Complete
    }

    /// Returns the reason why a run without a violation proves nothing: it did not reach its end.
    pub(in crate::judge::checker) fn given_up(&self) -> Option<String> {
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
        match &event.kind {
            EventKind::Invoke { op, lock, owner, call } => {
                open.insert(*op, calls.len());
                let (host, from) = (event.host, event.at);
                let (lock, owner, call) = (*lock, *owner, *call);
                calls.push(Asked { host, lock, owner, call, from, returned: None, over: None });
            }
            EventKind::Return { op, outcome } => {
                if let Some(call) = open.remove(op) {
                    (calls[call].returned, calls[call].over) = (Some((event.at, outcome)), Some(event.at));
                }
            }
            EventKind::Life { life: Life::Crashed | Life::Started } => open.retain(|_, call| {
                let call = &mut calls[*call];
                if call.host == event.host {
                    call.over = Some(event.at);
                }
                call.host != event.host
            }),
            _ => {}
        }
    }
    calls
}
