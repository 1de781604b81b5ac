//! Why a node grants a lock to a second owner within the promise to a first one: what
//! [`windows`](super::windows) asks of each double grant.

use std::{ops::Range, time::Duration};

use lockstorm_sim::time::{True, Wall};

use super::{authority::Service, interval::Overlap, promise::Promise};
use crate::judge::history::{ClockId, Event, EventKind, History, Host, Life, LossCause};

/// Why two owners were granted a lock at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Failover,
    /// With the time for which both were masters.
    TwoMasters(Duration),
    Crash,
    Clock,
}

/// A node grants a lock to a second owner within the promise to a first one.
pub(super) struct DoubleGrant<'a> {
    history: &'a History,
    first: &'a Promise,
    /// The numbers of the events from the beginning of the first hold to the instant of the second
    /// one.
    meanwhile: Range<usize>,
    /// The number of the event that grants the second one, or with which its owner is told that it
    /// has it again.
    granting: usize,
    /// Who grants, and since when it is a master, where it is one.
    here: Host,
    service: Option<Service>,
    services: &'a [Service],
}

impl<'a> DoubleGrant<'a> {
    pub(super) fn of(
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
        // Where no node grants it, its owner is told that a node has come back with it.
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

    /// Why the second owner was granted the lock; `None` if nothing explains it.
    pub(super) fn window(&self) -> Option<Window> {
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

    /// How old the newest grant or renewal of the first hold was, where this node says that it had
    /// no such hold when it was promoted: at the promotion, or when the master that gave it ceased
    /// to serve if that came first. Replication lagged by no less, unless the key had gone to
    /// another node with its slot. `None` where the node had the hold, be it with an older expiry.
    pub(super) fn lag(&self) -> Option<Duration> {
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

    /// The events about the first hold meanwhile.
    fn about_first(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.about_owner(self.meanwhile.clone())
    }

    /// The events about holds of the first owner.
    fn about_owner(&self, numbers: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        let group = &self.history.lock(self.first.lock).authority;
        numbers.filter(move |number| {
            let event = self.event(*number);
            event.kind.hold() == Some((self.first.lock, self.first.owner, self.first.mode))
                && group.group_of(event.host).is_some()
        })
    }

    /// By what an event says about the first hold, which is the last word of it here.
    fn became(&self, last: usize) -> Option<Window> {
        let EventKind::Vanished { how, .. } = self.event(last).kind else { return None };
        match how {
            LossCause::Crash => Some(Window::Crash),
            LossCause::Failover => self.elsewhere().or(Some(Window::Failover)),
            LossCause::Expired => self.expired(last),
            _ => None,
        }
    }

    /// Where the node was promoted after the first hold was granted, and did not say that it lost
    /// the hold then.
    fn inherited(&self, promoted: usize) -> Option<Window> {
        let is_lost = |number: usize| matches!(self.event(number).kind, EventKind::Vanished { .. });
        // That a replica lost its copy is no loss of the group.
        let counts = |number: usize| {
            !is_lost(number) || self.history.was_master(self.first.lock, self.event(number).host, number)
        };
        let last = self.about_first().rfind(|number| *number < promoted && counts(*number))?;
        if is_lost(last) {
            // A master that was deposed may have granted the hold anew.
            let again = self.about_first().any(|number| number > promoted && gives(self.event(number)));
            return if again { self.elsewhere() } else { self.became(last) };
        }
        let (until, lease) = expiry(self.event(last))?;
        let shown = self.history.clock(self.here).reading(ClockId::Wall, self.event(promoted).at);
        let passed = self.event(promoted).at.since(self.event(last).at);
        // Over by the clock of this node, though not by its master's.
        (shown >= until.as_nanos() && passed < lease).then_some(Window::Clock)
    }

    /// Where the first hold expired on the node that says so.
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
            // It came back with that end, and had another one before.
            set = expiries.find(|(number, _)| came_back(latest) && !came_back(*number))?.0;
        } else if !expiries.any(|(_, (until, _))| shown >= until.as_nanos()) {
            return None;
        }
        let crashed = (set..last).map(|number| self.event(number)).any(|event| {
            event.host == *host && matches!(event.kind, EventKind::Life { life: Life::Crashed })
        });
        match self.event(set).host == *host {
            true if crashed => Some(Window::Crash),
            // It was promoted with an older hold, and the node that grants now followed it
            // meanwhile.
            set_here if *host != self.here => (!set_here).then_some(Window::Failover),
            _ => self.elsewhere(),
        }
    }

    /// What became of a grant by another node that this one never had.
    fn elsewhere(&self) -> Option<Window> {
        let is_other = |number: &usize| self.event(*number).host != self.here;
        let given = self.about_first().rfind(|number| is_other(number) && gives(self.event(*number)))?;
        let other = self.event(given).host;
        let last = self.about_first().rfind(|number| self.event(*number).host == other)?;
        let promoted = self.service.and_then(|service| service.promoted);
        if is_taken(self.event(last)) && promoted.is_some_and(|promoted| last < promoted) {
            // It was gone before this node had anything to lose.
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

/// For how long two nodes were masters at once.
fn both_served(history: &History, one: &Service, other: &Service) -> Duration {
    let until = one.end(history).min(other.end(history));
    until.since(one.begin(history).max(other.begin(history)))
}

/// Whether a node gives a hold to its owner, or gives it more time, or has come back with it.
fn gives(event: &Event) -> bool {
    matches!(event.kind, EventKind::Granted { .. } | EventKind::Extended { .. } | EventKind::Regained { .. })
}

/// The number of the event with which the hold of a promise came back, if that is the last that its
/// group has done with it before an event.
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

/// Whether a hold was taken from its owner on the master, so that no replica has it either.
fn is_taken(event: &Event) -> bool {
    match event.kind {
        EventKind::Vanished { how, .. } => {
            !matches!(how, LossCause::Expired | LossCause::Crash | LossCause::Failover)
        }
        _ => false,
    }
}

/// The expiry that an event has set on a hold, and after how much time.
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
