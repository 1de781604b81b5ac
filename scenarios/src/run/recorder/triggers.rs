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
            let Trigger { nth, always, .. } = awaited.trigger;
            let counts = if always { awaited.count >= nth } else { awaited.count == nth };
            if counts {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Draw, Span};

    const NOW: True = True::from_secs(7);

    /// The events, counted from 1, of seven that trigger an occurrence.
    #[test]
    fn an_occurrence_comes_after_the_nth_event_and_then_after_each_if_it_always_does() {
        for (nth, always, expected) in [
            (1, false, &[1][..]),
            (3, false, &[3]),
            (7, false, &[7]),
            (8, false, &[]),
            (1, true, &[1, 2, 3, 4, 5, 6, 7]),
            (6, true, &[6, 7]),
            (8, true, &[]),
        ] {
            let trigger = Trigger {
                client: None,
                of: None,
                event: Happening::Acquired,
                nth,
                always,
                delay: Draw::Fixed(Span(Duration::ZERO)),
            };
            let mut triggers = Triggers::default();
            triggers.add(4, trigger, Duration::from_secs(2), Scope::default());
            let happens = |triggers: &mut Triggers, what| triggers.happened(NOW, Host(0), None, what);
            let mut after = Vec::new();
            for number in 1..=7 {
                assert!(!happens(&mut triggers, Happening::Released), "it is of another kind");
                if happens(&mut triggers, Happening::Acquired) {
                    after.push(number);
                }
            }
            assert_eq!(after, expected, "{nth} {always}");
            let due: Vec<_> = std::iter::from_fn(|| triggers.take_due()).collect();
            assert_eq!(due, vec![(4, NOW + Duration::from_secs(2)); expected.len()]);
        }
    }

    #[test]
    fn a_trigger_counts_the_events_of_its_clients_with_its_lock() {
        let (one, two) = (Host(1), Host(2));
        for (clients, lock, counted) in [
            (None, None, [true, true, true, true]),
            (Some(vec![one]), None, [true, true, false, false]),
            (Some(vec![one, two]), None, [true, true, true, true]),
            (Some(vec![]), None, [false; 4]),
            (None, Some(Lock(0)), [true, false, true, false]),
            (Some(vec![two]), Some(Lock(0)), [false, false, true, false]),
        ] {
            let scope = Scope { clients, lock };
            let events = [(one, 0), (one, 1), (two, 0), (two, 1)];
            let contains = events.map(|(client, lock)| scope.contains(client, Some(Lock(lock))));
            assert_eq!(contains, counted, "{scope:?}");
            assert_eq!(scope.contains(two, None), counted[2] && lock.is_none(), "{scope:?}: a node");
        }
    }
}
