//! Beliefs of clients: the intervals of true time in which an owner believed that it held a lock.
//!
//! A belief lasts until the client learns of the loss, releases the lock, crashes, or until the
//! clock of its deadline shows the deadline. That clock is the client's own and may be wrong. It
//! may also be the wrong kind of clock: a monotonic clock stops while its host is suspended, so the
//! belief lasts longer. A paused client does not act, but its clock continues.

use std::collections::BTreeMap;

use lockstorm_world::time::True;

use super::interval::interval;
use crate::judge::history::{Deadline, EventKind, History, Life, Lock, Mode, Owner, Reason};

/// An interval in which an owner believed that it held a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::judge::checker) struct Belief {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) mode: Mode,
    pub(in crate::judge::checker) from: True,
    /// Its end, not later than the end of the run.
    pub(in crate::judge::checker) until: True,
    pub(in crate::judge::checker) end: BeliefEnd,
    /// The greatest fencing token that the owner got.
    pub(in crate::judge::checker) token: Option<u64>,
    /// The instants at which the owner learned of each acquisition of this belief: the first one
    /// and every nested one.
    pub(in crate::judge::checker) acquired: Vec<True>,
    /// The latest deadline that it relied on, with the instant since which it did.
    pub(in crate::judge::checker) deadline: Option<(True, Deadline)>,
}

/// The cause of a belief's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::checker) enum BeliefEnd {
    /// The owner released the lock.
    Released,
    /// The owner learned that the lock was lost.
    Told,
    /// Its clock showed the deadline.
    OwnClock,
    /// It crashed.
    Crashed,
    /// The run was over first.
    RunOver,
}

interval!(Belief, without_end);

#[derive(Debug)]
struct Open {
    belief: Belief,
    /// The true instant of the deadline; `MAX` if it never comes.
    lapses: True,
    /// The number of levels that the owner believes it holds.
    count: u32,
}

/// Returns all beliefs of a history, sorted by lock and beginning.
pub(in crate::judge::checker) fn beliefs(history: &History) -> Vec<Belief> {
    let mut open: BTreeMap<(Lock, Owner, Mode), Open> = BTreeMap::new();
    let mut all = Vec::new();
    let mut close = |Open { mut belief, lapses, .. }: Open, at: True, why: BeliefEnd| {
        (belief.until, belief.end) = if lapses <= at { (lapses, BeliefEnd::OwnClock) } else { (at, why) };
        // A belief that lapsed before it began does not count: the client looked at its clock
        // first.
        if belief.from < belief.until {
            all.push(belief);
        }
    };
    for event in &history.events {
        let at = event.at;
        match &event.kind {
            EventKind::Believes { lock, owner, until, token, count, mode } => {
                let lapses = until.map_or(True::MAX, |deadline| {
                    history.clock(event.host).first_true(deadline, at).unwrap_or(True::MAX)
                });
                let of = (*lock, *owner, *mode);
                if open.get(&of).is_some_and(|state| state.lapses < at)
                    && let Some(lapsed) = open.remove(&of)
                {
                    close(lapsed, at, BeliefEnd::OwnClock);
                }
                let fresh = || {
                    let (lock, owner, mode) = of;
                    let end = BeliefEnd::RunOver;
                    Open {
                        belief: Belief {
                            lock,
                            owner,
                            mode,
                            from: at,
                            until: at,
                            end,
                            token: None,
                            acquired: Vec::new(),
                            deadline: None,
                        },
                        lapses,
                        count: 0,
                    }
                };
                let state = open.entry(of).or_insert_with(fresh);
                state.lapses = lapses;
                // A level that is over when the owner learns of it does not count as learned.
                if *count > state.count && at < lapses {
                    state.belief.acquired.push(at);
                }
                state.count = *count;
                state.belief.deadline = until.map(|deadline| (at, deadline));
                state.belief.token = state.belief.token.max(*token);
            }
            EventKind::Disbelieves { lock, owner, why, mode } => {
                if let Some(state) = open.remove(&(*lock, *owner, *mode)) {
                    let why = match why {
                        Reason::Released => BeliefEnd::Released,
                        Reason::Lost => BeliefEnd::Told,
                        Reason::Expired => BeliefEnd::OwnClock,
                    };
                    close(state, at, why);
                }
            }
            EventKind::Life { life: Life::Crashed | Life::Started } => {
                let gone: Vec<(Lock, Owner, Mode)> = open
                    .keys()
                    .filter(|(_, owner, _)| history.client_of(*owner) == event.host)
                    .copied()
                    .collect();
                for key in gone {
                    if let Some(state) = open.remove(&key) {
                        close(state, at, BeliefEnd::Crashed);
                    }
                }
            }
            _ => {}
        }
    }
    let end = history.header.end;
    for (_, state) in open {
        close(state, end, BeliefEnd::RunOver);
    }
    all.sort_by_key(|belief| (belief.lock, belief.from, belief.owner));
    all
}
