//! The reason why a node grants a lock to a second owner within the promise to a first one: the
//! question of [`windows`](crate::judge::checker::windows) about each double grant. `overlap.rs`
//! decides if a lock was granted twice.

use std::{ops::Range, time::Duration};

use lockstorm_world::time::{True, Wall};

use super::{authority::Service, interval::Overlap, promise::Promise};
use crate::judge::history::{ClockId, Event, EventKind, History, Host, Life, LossCause};

/// The reason why two owners were granted a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::checker) enum Window {
    Failover,
    /// Carries the time for which both nodes were masters.
    TwoMasters(Duration),
    Crash,
    Clock,
}

/// A grant of a lock to a second owner within the promise to a first one.
pub(in crate::judge::checker) struct DoubleGrant<'a> {
    history: &'a History,
    first: &'a Promise,
    /// The numbers of the events from the beginning of the first hold to the instant of the second
    /// one.
    meanwhile: Range<usize>,
    /// The number of the event that grants the second hold, or by which its owner learns that it
    /// has it again.
    granting: usize,
    /// The node that grants, and the period in which it is a master, if it is one.
    here: Host,
    service: Option<Service>,
    services: &'a [Service],
}

impl<'a> DoubleGrant<'a> {
    pub(in crate::judge::checker) fn of(
        history: &'a History,
        overlap: &Overlap<'a, Promise>,
        services: &'a [Service],
    ) -> Option<Self> {
        let (first, second, at) = (overlap.first, overlap.second, overlap.from);
        let events = &history.events;
        let since = |at: True| events.partition_point(|event| event.at < at);
        let begin = came_back(history, first, since(first.from)).unwrap_or(since(first.from));
        let end = events.partition_point(|event| event.at <= at);
        let group = &history.lock(first.lock).authority;
        let of_second =
            |number: &usize| events[*number].kind.hold() == Some((second.lock, second.owner, second.mode));
        let grants = |number: &usize| {
            let gives =
                matches!(events[*number].kind, EventKind::Granted { .. } | EventKind::Extended { .. });
            gives && group.group_of(events[*number].host).is_some()
        };
        let mut at_once = (since(at)..end).filter(of_second);
        // If no node grants it, its owner believes in a hold with which a node came back.
        let told = || {
            let is_told = |number: &usize| matches!(events[*number].kind, EventKind::Believes { .. });
            let number = (since(at)..end).filter(of_second).find(is_told)?;
            Some((number, events[came_back(history, second, number)?].host))
        };
        let granted = at_once.find(grants).map(|number| (number, events[number].host));
        let (granting, here) = granted.or_else(told)?;
        let service =
            services.iter().find(|service| service.node == here && service.is_on(granting)).copied();
        Some(Self { history, first, meanwhile: begin..end, granting, here, service, services })
    }

    /// Returns the reason for the grant to the second owner; `None` if nothing explains it.
    pub(in crate::judge::checker) fn window(&self) -> Option<Window> {
        let promoted = self.service.and_then(|service| service.promoted);
        let last = self.about_first().rfind(|number| self.event(*number).host == self.here);
        if let Some(last) = last.filter(|last| promoted.is_none_or(|promoted| *last > promoted)) {
            return self.became(last);
        }
        let is_given =
            |until: usize| self.about_first().any(|number| number < until && gives(self.event(number)));
        match promoted.filter(|promoted| is_given(*promoted)) {
            Some(promoted) => self.inherited(promoted),
            None => self.elsewhere(),
        }
    }

    /// Returns the age of the newest grant or renewal of the first hold, if this node recorded that
    /// it was promoted without that hold. The age is taken at the promotion, or at the end of the
    /// granting master's service if that was earlier. Replication lagged by at least this much,
    /// unless the key had moved to another node with its slot. `None` if the node had the hold,
    /// even with an older expiry.
    pub(in crate::judge::checker) fn lag(&self) -> Option<Duration> {
        let promoted = self.service?.promoted?;
        let is_lost =
            |event: &Event| matches!(event.kind, EventKind::Vanished { how: LossCause::Failover, .. });
        let says_so = |number: usize| {
            number >= promoted && self.event(number).host == self.here && is_lost(self.event(number))
        };
        if !self.about_first().any(says_so) {
            return None;
        }
        let given = self.about_first().rfind(|number| {
            let event = self.event(*number);
            *number < promoted
                && event.host != self.here
                && matches!(event.kind, EventKind::Granted { .. } | EventKind::Extended { .. })
        })?;
        let theirs = self
            .services
            .iter()
            .find(|service| service.node == self.event(given).host && service.is_on(given));
        let promotion = self.event(promoted).at;
        let end = theirs.map_or(promotion, |service| service.end(self.history).min(promotion));
        Some(end.since(self.event(given).at))
    }

    fn event(&self, number: usize) -> &'a Event {
        &self.history.events[number]
    }

    /// Returns the events about the first hold within `meanwhile`.
    fn about_first(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.about_owner(self.meanwhile.clone())
    }

    /// Returns the events about the first owner's holds.
    fn about_owner(&self, numbers: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        let group = &self.history.lock(self.first.lock).authority;
        numbers.filter(move |number| {
            let event = self.event(*number);
            event.kind.hold() == Some((self.first.lock, self.first.owner, self.first.mode))
                && group.group_of(event.host).is_some()
        })
    }

    /// Returns the reason that follows from this node's last event about the first hold.
    fn became(&self, last: usize) -> Option<Window> {
        let EventKind::Vanished { how, .. } = self.event(last).kind else { return None };
        match how {
            LossCause::Crash => Some(Window::Crash),
            LossCause::Failover => self.elsewhere().or(Some(Window::Failover)),
            LossCause::Expired => self.expired(last),
            _ => None,
        }
    }

    /// Returns the reason if the node was promoted after the grant of the first hold, and recorded
    /// no loss of the hold.
    fn inherited(&self, promoted: usize) -> Option<Window> {
        let is_lost = |number: usize| matches!(self.event(number).kind, EventKind::Vanished { .. });
        // A replica's loss of its copy is not a loss of the group.
        let counts = |number: usize| {
            !is_lost(number) || self.history.was_master(self.first.lock, self.event(number).host, number)
        };
        let last = self.about_first().rfind(|number| *number < promoted && counts(*number))?;
        if is_lost(last) {
            // A deposed master may have granted the hold again.
            let again = self.about_first().any(|number| number > promoted && gives(self.event(number)));
            return if again { self.elsewhere() } else { self.became(last) };
        }
        let (until, lease) = expiry(self.event(last))?;
        let shown = self.history.clock(self.here).reading(ClockId::Wall, self.event(promoted).at);
        let passed = self.event(promoted).at.since(self.event(last).at);
        // The hold was over by this node's clock, but not by its master's.
        (shown >= until.as_nanos() && passed < lease).then_some(Window::Clock)
    }

    /// Returns the reason if the first hold expired on the node of event `last`.
    fn expired(&self, last: usize) -> Option<Window> {
        let Event { at, host, .. } = self.event(last);
        let shown = self.history.clock(*host).reading(ClockId::Wall, *at);
        let mut expiries =
            self.about_owner(0..last).rev().filter_map(|number| Some((number, expiry(self.event(number))?)));
        let (latest, (until, lease)) = expiries.next()?;
        let came_back = |number: usize| matches!(self.event(number).kind, EventKind::Regained { .. });
        let mut set = latest;
        if shown >= until.as_nanos() {
            if at.since(self.event(latest).at) < lease {
                return Some(Window::Clock);
            }
            // The node came back with that end, and had another one before.
            set = expiries.find(|(number, _)| came_back(latest) && !came_back(*number))?.0;
        } else if !expiries.any(|(_, (until, _))| shown >= until.as_nanos()) {
            return None;
        }
        let crashed = (set..last).map(|number| self.event(number)).any(|event| {
            event.host == *host && matches!(event.kind, EventKind::Life { life: Life::Crashed })
        });
        match self.event(set).host == *host {
            true if crashed => Some(Window::Crash),
            // That node was promoted with an older hold, and the node that grants now followed it.
            set_here if *host != self.here => (!set_here).then_some(Window::Failover),
            _ => self.elsewhere(),
        }
    }

    /// Returns the reason if another node gave the first hold and this one never had it.
    fn elsewhere(&self) -> Option<Window> {
        let is_other = |number: &usize| self.event(*number).host != self.here;
        let given = self.about_first().rfind(|number| is_other(number) && gives(self.event(*number)))?;
        let other = self.event(given).host;
        let last = self.about_first().rfind(|number| self.event(*number).host == other)?;
        let promoted = self.service.and_then(|service| service.promoted);
        if is_taken(self.event(last)) && promoted.is_some_and(|promoted| last < promoted) {
            // The hold was gone before this node had anything to lose.
            return None;
        }
        let still = |service: &&Service| {
            service.node == other && service.is_on(given) && service.is_on(self.granting)
        };
        Some(match (self.services.iter().find(still), self.service) {
            (Some(theirs), Some(ours)) => Window::TwoMasters(both_served(self.history, theirs, &ours)),
            // Slots that are being moved are served by a node that is not their master yet.
            (Some(_), None) => Window::TwoMasters(Duration::ZERO),
            (None, _) => Window::Failover,
        })
    }
}

/// Returns the time for which two nodes were masters at once.
fn both_served(history: &History, one: &Service, other: &Service) -> Duration {
    let until = one.end(history).min(other.end(history));
    until.since(one.begin(history).max(other.begin(history)))
}

/// Returns true if a node grants a hold, extends it, or has come back with it.
fn gives(event: &Event) -> bool {
    matches!(event.kind, EventKind::Granted { .. } | EventKind::Extended { .. } | EventKind::Regained { .. })
}

/// Returns the number of the event with which a promise's hold came back, if it is the group's last
/// event about the hold before `before`.
fn came_back(history: &History, promise: &Promise, before: usize) -> Option<usize> {
    let group = &history.lock(promise.lock).authority;
    let is_done = |event: &Event| {
        let of_hold = event.kind.hold() == Some((promise.lock, promise.owner, promise.mode));
        of_hold
            && group.group_of(event.host).is_some()
            && match event.kind {
                EventKind::Extended { by, .. } => history.is_own(promise.owner, by),
                EventKind::Released { left, .. } => left == 0,
                _ => true,
            }
    };
    let last = history.events[..before].iter().rposition(is_done)?;
    matches!(history.events[last].kind, EventKind::Regained { .. }).then_some(last)
}

/// Returns true if a client or an eviction removed the hold on the master, so that no replica has
/// it either.
fn is_taken(event: &Event) -> bool {
    match event.kind {
        EventKind::Vanished { how, .. } => {
            !matches!(how, LossCause::Expired | LossCause::Crash | LossCause::Failover)
        }
        _ => false,
    }
}

/// Returns the expiry that an event set on a hold, and its lease (zero if the event has none).
fn expiry(event: &Event) -> Option<(Wall, Duration)> {
    match event.kind {
        EventKind::Granted { until, lease_ms, .. }
        | EventKind::Extended { until, lease_ms, .. }
        | EventKind::Regained { until, lease_ms, .. }
        | EventKind::Released { until, lease_ms, .. } => {
            Some((until?, Duration::from_millis(lease_ms.unwrap_or(0))))
        }
        _ => None,
    }
}
