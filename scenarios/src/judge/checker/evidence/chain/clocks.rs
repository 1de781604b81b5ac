//! Clocks that were wrong when they decided: when a key expired, how long an owner believed, when a
//! waiter tried again, which waiter lost its place in a queue.

use std::time::Duration;

use lockstorm_world::time::True;

use super::{Chain, What, gives};
use crate::judge::history::{ClockId, Event, EventKind, Fault, Host, Lock, LossCause, Owner, Reason, Wake};

/// A clock with at least this error is wrong for leases, which count milliseconds.
const WRONG: Duration = Duration::from_millis(1);

/// A timer is wrong if its error is at least one part in this many of the elapsed time. A client
/// acts several times in that time, so a smaller error does not make it late.
const LATE_PART: u32 = 10;

/// A clock that counted another time than passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    /// The instant at which the clock stopped counting.
    pub(crate) at: True,
    pub(crate) host: Host,
    pub(crate) clock: ClockId,
    /// The instant from which it counted.
    pub(crate) since: True,
    /// The host whose clock showed the instant `since`: a replica counts from its master's time,
    /// and a client from that of another client.
    pub(crate) of: Host,
    /// The time that passed by the clock, in nanoseconds; negative if the clock is behind that of
    /// `of`.
    pub(crate) passed: i64,
    /// The event from which it counted.
    from_event: usize,
}

impl Chain<'_> {
    /// Records and returns the clock if its count since an event is wrong by at least `least`.
    fn find_clock(
        &mut self,
        host: Host,
        clock: ClockId,
        from_event: usize,
        of: Host,
        at: True,
        least: Duration,
    ) -> Option<Shown> {
        let since = self.history.events[from_event].at;
        let reading = |host: Host, at: True| self.history.clock(host).reading(clock, at);
        let passed = reading(host, at).saturating_sub(reading(of, since));
        let truth = i64::try_from(at.since(since).as_nanos()).unwrap_or(i64::MAX);
        let is_wrong = passed.abs_diff(truth) >= u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
        let shown = Shown { at, host, clock, since, of, passed, from_event };
        is_wrong.then(|| {
            self.clocks.entry(shown).or_default();
            shown
        })
    }

    /// Like [`Chain::find_clock`], but records also that the clock and the faults on it led to
    /// `event`.
    fn find_clock_before(
        &mut self,
        event: usize,
        host: Host,
        clock: ClockId,
        from_event: usize,
        of: Host,
        least: Duration,
    ) {
        let at = self.history.events[event].at;
        if let Some(shown) = self.find_clock(host, clock, from_event, of, at, least) {
            self.clocks.entry(shown).or_default().insert(event);
            for fault in self.faults_of_clock(&shown) {
                self.faults.entry(fault).or_default().insert(event);
            }
        }
    }

    /// Adds the wrong clocks that led to this event.
    pub(super) fn find_clocks_before(&mut self, at: usize) {
        let Event { host, ref kind, .. } = self.history.events[at];
        let owner = kind.owner();
        let of = |event: &Event| owner.is_some_and(|owner| self.is_about(event, owner));
        match *kind {
            EventKind::Vanished { how: LossCause::Expired, owner, .. } => {
                let here = self.last(at, |event| event.host == host && of(event) && gives(event));
                let Some(given) = here.or_else(|| self.last(at, |event| of(event) && gives(event))) else {
                    return;
                };
                let (by, since) = (self.history.events[given].host, self.history.events[given].at);
                self.find_clock_before(at, host, ClockId::Wall, given, by, WRONG);
                // With a right timer, the holder would have extended it several times.
                let (client, passed) =
                    (self.history.client_of(owner), self.history.events[at].at.since(since));
                let late = (passed / LATE_PART).max(WRONG);
                self.find_clock_before(at, client, ClockId::Monotonic, given, client, late);
            }
            EventKind::Disbelieves { why: Reason::Expired, .. } => {
                let believes = |event: &Event| of(event) && matches!(event.kind, EventKind::Believes { .. });
                let Some(belief) = self.last(at, believes) else { return };
                if let EventKind::Believes { until: Some(deadline), .. } = self.history.events[belief].kind {
                    self.find_clock_before(at, host, deadline.clock, belief, host, WRONG);
                }
            }
            EventKind::Woken { by: Wake::Timer, .. } => {
                let waits = |event: &Event| of(event) && matches!(event.kind, EventKind::Waiting { .. });
                let Some(waited) = self.last(at, waits) else { return };
                let passed = self.history.events[at].at.since(self.history.events[waited].at);
                self.find_clock_before(
                    at,
                    host,
                    ClockId::Monotonic,
                    waited,
                    host,
                    (passed / LATE_PART).max(WRONG),
                );
            }
            EventKind::Queue { lock, .. } => self.find_clocks_of_queue(at, lock),
            _ => {}
        }
    }

    /// Adds the wrong clocks that removed waiters from a queue. A place has a deadline by the wall
    /// clock of its client, which another client compares with its own clock.
    fn find_clocks_of_queue(&mut self, at: usize, lock: Lock) {
        let (history, host) = (self.history, self.history.events[at].host);
        let before = |event: &Event| {
            event.host == host && matches!(&event.kind, EventKind::Queue { lock: of, .. } if *of == lock)
        };
        let Some(before) = self.last(at, before) else { return };
        let gone: Vec<Owner> =
            self.waiters(before).iter().filter(|one| !self.waiters(at).contains(one)).copied().collect();
        let tries = |event: &Event| {
            let tries = matches!(event.kind, EventKind::Invoke { .. } | EventKind::Woken { .. });
            tries
                && event.kind.lock() == Some(lock)
                && event.kind.owner().is_some_and(|one| !gone.contains(&one))
        };
        let Some(asked) = self.last(at, tries) else { return };
        let by = history.events[asked].host;
        for owner in gone {
            let Some(called) = self.call(at, owner) else { continue };
            self.find_clock_before(at, by, ClockId::Wall, called, history.client_of(owner), WRONG);
        }
    }

    /// Adds the clock by which an owner believes, if it was wrong up to an instant.
    pub(super) fn find_clock_of_belief(&mut self, belief: usize, until: True) {
        let Event { host, ref kind, at } = self.history.events[belief];
        let EventKind::Believes { until: Some(deadline), .. } = *kind else { return };
        let over = self.history.clock(host).first_true(deadline, at);
        let until = over.map_or(until, |over| over.min(until));
        if let Some(shown) = self.find_clock(host, deadline.clock, belief, host, until, WRONG) {
            self.note_faults(&shown);
        }
    }

    /// Adds the clock by which a waiter waits until it tries again, if it was wrong.
    pub(super) fn find_clock_of_wait(&mut self, owner: Owner, acted: usize, until: True) {
        let client = self.history.client_of(owner);
        let late = (until.since(self.history.events[acted].at) / LATE_PART).max(WRONG);
        if let Some(shown) = self.find_clock(client, ClockId::Monotonic, acted, client, until, late) {
            self.note_faults(&shown);
        }
    }

    /// Adds the node's clock by which an owner's lease runs, if it was wrong up to an instant.
    pub(super) fn find_clock_of_lease(&mut self, owner: Owner, before: usize, until: True) {
        let given = self.last(before, |event| self.is_about(event, owner) && gives(event));
        let Some(given) = given else { return };
        let node = self.history.events[given].host;
        if let Some(shown) = self.find_clock(node, ClockId::Wall, given, node, until, WRONG) {
            self.note_faults(&shown);
        }
    }

    /// Adds the clock by which a rate limiter counts the permits in its window, if it was wrong.
    pub(super) fn find_clock_of_window(&mut self, oldest: usize, newest: usize, window_ms: u64) {
        let events = &self.history.events;
        if events[newest].at.since(events[oldest].at) > Duration::from_millis(window_ms) {
            return;
        }
        let (here, there) = (events[newest].host, events[oldest].host);
        self.find_clock_before(newest, here, ClockId::Wall, oldest, there, WRONG);
    }

    fn note_faults(&mut self, shown: &Shown) {
        for fault in self.faults_of_clock(shown) {
            self.faults.entry(fault).or_default().insert(shown.from_event);
        }
    }

    /// Returns the faults that changed the clock while it counted; if two clocks were compared,
    /// also those before.
    fn faults_of_clock(&self, shown: &Shown) -> Vec<usize> {
        let compared = shown.host != shown.of;
        let changes = |host: Host, at: True| {
            let segments = self.history.clock(host).segments();
            segments.iter().any(|segment| segment.from == at)
        };
        let hosts = [(shown.host, shown.at), (shown.of, shown.since)];
        let meanwhile = |fault: &Fault| {
            hosts.iter().any(|(host, until)| {
                let instants = [Some(fault.from), fault.until.filter(|_| fault.lasts)];
                let mut instants = instants.into_iter().flatten();
                let in_time = |at: True| {
                    at <= *until && (compared || at >= shown.since || fault.is_in_force(shown.since))
                };
                fault.targets.contains(host) && instants.any(|at| in_time(at) && changes(*host, at))
            })
        };
        let faults = self.history.faults.iter().enumerate();
        faults.filter(|(_, fault)| meanwhile(fault)).map(|(number, _)| number).collect()
    }

    /// Returns the causes of a wrong clock: the faults on it and the event from which it counted.
    pub(super) fn causes_of_clock(&self, shown: &Shown) -> Vec<What> {
        let faults = self.faults_of_clock(shown).into_iter().map(What::Fault);
        faults.chain([What::Event(shown.from_event)]).collect()
    }
}
