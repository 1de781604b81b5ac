//! What occurrences of faults wait for.

use std::{collections::VecDeque, time::Duration};

use lockstorm_sim::time::True;

use crate::{
    file::fault::{Happening, Trigger},
    judge::history::{Host, Lock},
};

/// The occurrences that wait for something to happen, and those for which it has.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    awaited: Vec<Awaited>,
    /// By number, with when they are due.
    due: VecDeque<(usize, True)>,
}

/// Where an event must happen for a trigger to count it.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// To one of these clients; to any if `None`.
    pub clients: Option<Vec<Host>>,
    /// With this lock; with any if `None`.
    pub lock: Option<Lock>,
}

impl Scope {
    fn contains(&self, client: Host, lock: Lock) -> bool {
        self.clients.as_ref().is_none_or(|clients| clients.contains(&client))
            && self.lock.is_none_or(|of| of == lock)
    }
}

#[derive(Debug)]
struct Awaited {
    occurrence: usize,
    trigger: Trigger,
    delay: Duration,
    scope: Scope,
    /// How often it has happened.
    count: u64,
}

impl Triggers {
    /// Has an occurrence wait for its trigger.
    pub(super) fn add(&mut self, occurrence: usize, trigger: Trigger, delay: Duration, scope: Scope) {
        self.awaited.push(Awaited { occurrence, trigger, delay, scope, count: 0 });
    }

    /// Something happened to a client with a lock; whether an occurrence has waited for it.
    pub(super) fn happened(&mut self, at: True, client: Host, lock: Lock, what: Happening) -> bool {
        let before = self.due.len();
        for awaited in &mut self.awaited {
            if awaited.trigger.event != what || !awaited.scope.contains(client, lock) {
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

    /// The next occurrence whose trigger has happened, with when it is due.
    pub(super) fn take_due(&mut self) -> Option<(usize, True)> {
        self.due.pop_front()
    }
}
