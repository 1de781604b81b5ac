//! What occurrences of faults wait for.

use std::{collections::VecDeque, time::Duration};

use lockstorm_sim::time::True;

use crate::{
    fault::{Happening, Trigger},
    history::Host,
};

/// The occurrences that wait for something to happen, and those for which it has.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    awaited: Vec<Awaited>,
    /// By number, with when they are due.
    due: VecDeque<(usize, True)>,
}

#[derive(Debug)]
struct Awaited {
    occurrence: usize,
    trigger: Trigger,
    delay: Duration,
    clients: Option<Vec<Host>>,
    /// How often it has happened.
    count: u64,
}

impl Triggers {
    /// Has an occurrence wait for its trigger, among these clients or all.
    pub(super) fn add(
        &mut self,
        occurrence: usize,
        trigger: Trigger,
        delay: Duration,
        clients: Option<Vec<Host>>,
    ) {
        self.awaited.push(Awaited { occurrence, trigger, delay, clients, count: 0 });
    }

    /// Something happened to a client; whether an occurrence has waited for it.
    pub(super) fn happened(&mut self, at: True, client: Host, what: Happening) -> bool {
        let before = self.due.len();
        for awaited in &mut self.awaited {
            let of_client = awaited.clients.as_ref().is_none_or(|clients| clients.contains(&client));
            if awaited.trigger.event != what || !of_client {
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
