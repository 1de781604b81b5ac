//! The triggers of fault occurrences.

use std::{collections::VecDeque, time::Duration};

use lockstorm_world::time::True;

use crate::{
    file::fault::{Happening, Trigger},
    judge::history::{Host, Lock},
};

/// The occurrences that wait for their trigger, and those that were triggered.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    awaited: Vec<Awaited>,
    /// The triggered occurrences by number, with the times at which they are due.
    due: VecDeque<(usize, True)>,
}

/// The clients and the lock whose events a trigger counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// Events of one of these clients; of any client if `None`.
    pub clients: Option<Vec<Host>>,
    /// Events of this lock; of any lock if `None`.
    pub lock: Option<Lock>,
}

impl Scope {
    fn contains(&self, host: Host, lock: Option<Lock>) -> bool {
        self.clients.as_ref().is_none_or(|clients| clients.contains(&host))
            && (self.lock.is_none() || self.lock == lock)
    }
}

#[derive(Debug)]
struct Awaited {
    occurrence: usize,
    trigger: Trigger,
    delay: Duration,
    scope: Scope,
    /// The number of matching events so far.
    count: u64,
}

impl Triggers {
    /// Registers an occurrence that waits for its trigger.
    pub(super) fn add(&mut self, occurrence: usize, trigger: Trigger, delay: Duration, scope: Scope) {
        self.awaited.push(Awaited { occurrence, trigger, delay, scope, count: 0 });
    }

    /// Processes an event of a client with a lock, or of a node. Returns true if it triggered an
    /// occurrence.
    pub(super) fn happened(&mut self, at: True, host: Host, lock: Option<Lock>, what: Happening) -> bool {
        let before = self.due.len();
        for awaited in &mut self.awaited {
            if awaited.trigger.event != what || !awaited.scope.contains(host, lock) {
                continue;
            }
            awaited.count += 1;
            let nth = awaited.trigger.nth;
            if awaited.count == nth || (awaited.trigger.always && awaited.count > nth) {
                self.due.push_back((awaited.occurrence, at + awaited.delay));
            }
        }
        self.due.len() > before
    }

    /// Returns the next triggered occurrence, and the time at which it is due.
    pub(super) fn take_due(&mut self) -> Option<(usize, True)> {
        self.due.pop_front()
    }
}
