//! A placement: one fault at one instant, as a file would write it.

use std::{fmt, time::Duration};

use indexmap::IndexMap;
use lockstorm_world::time::True;
use serde::{Deserialize, Serialize};

use crate::{
    file::{
        fault::{ClockStep, Crash, Cut, Fault, Pause, Promote, Restart, Slow, Suspend},
        scenario::Scenario,
    },
    units::{Draw, Span, Step},
};

/// A fault begins this long before or after an event: nothing happens in between.
pub(super) const BESIDE: Duration = Duration::from_nanos(1);

/// One fault of a hunt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The instant at which it begins, between two events.
    pub at: True,
    /// The fault and its hosts.
    pub what: What,
    /// The instant at which it ends; its start for a matter of a moment.
    pub ends: True,
    /// The cost by which placements are ordered: cheap ones are tried first.
    pub(super) cost: Cost,
}

/// A kind of fault with its hosts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are hosts and amounts, named after what they are")]
pub enum What {
    /// The process stops.
    Pause { host: String },
    /// The machine sleeps.
    Suspend { host: String },
    /// The host is down.
    Crash { host: String },
    /// The host crashes and starts again at once.
    Restart { host: String },
    /// Packets between two hosts wait, in one direction or both.
    Cut { from: String, to: String, one_way: bool },
    /// The wall clock jumps by this many nanoseconds.
    ClockStep { host: String, by: i64 },
    /// The replica becomes a master.
    Promote { host: String },
    /// The messages that a host sends to another one at one instant come later by this many
    /// nanoseconds.
    Reorder { from: String, to: String, by: i64 },
}

/// A placement as processes send it to each other, without its cost.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    at: i64,
    what: What,
    ends: i64,
}

impl Sent {
    pub(super) fn of(placement: &Placement) -> Sent {
        let Placement { at, what, ends, .. } = placement;
        Sent { at: at.as_nanos(), what: what.clone(), ends: ends.as_nanos() }
    }
}

impl From<Sent> for Placement {
    fn from(Sent { at, what, ends }: Sent) -> Placement {
        let (at, ends) = (True::from_nanos(at), True::from_nanos(ends));
        Placement { at, what, ends, cost: Cost::default() }
    }
}

/// The place of a fault in a run, by which placements are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    /// The instant at which the fault begins.
    pub(super) mark: Mark,
    /// True if it begins before the event of its instant.
    pub(super) is_before: bool,
    /// The number of its size, the largest first.
    pub(super) size: u32,
}

/// The meaning of an instant, the best for a fault first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Mark {
    /// 0 at an event in the chain of a good outcome, 1 at another recorded event, 2 at a timer.
    pub(super) rank: u8,
    /// The number of messages between the event and the outcome.
    pub(super) hops: u8,
    /// True if the outcome is a use of the lock, a release or a write; false for a grant or a
    /// renewal.
    pub(super) is_use: bool,
}

impl What {
    /// Returns true if the fault is over at the instant at which it begins.
    pub(super) fn is_of_a_moment(&self) -> bool {
        matches!(self, What::Restart { .. } | What::ClockStep { .. } | What::Promote { .. })
    }
}

impl Placement {
    /// Returns the part by which placements are compared: everything except the cost.
    pub(super) fn key(&self) -> (True, &What, True) {
        (self.at, &self.what, self.ends)
    }

    /// Returns its length; `None` for a matter of a moment.
    pub fn length(&self) -> Option<Duration> {
        (!self.what.is_of_a_moment()).then(|| self.ends.since(self.at))
    }

    /// Returns the fault as a file would write it.
    pub fn fault(&self) -> Fault {
        let fault: Fault = match &self.what {
            What::Pause { host } => Pause(host.as_str().into()).into(),
            What::Suspend { host } => Suspend(host.as_str().into()).into(),
            What::Crash { host } => Crash(host.as_str().into()).into(),
            What::Restart { host } => Restart(host.as_str().into()).into(),
            What::Promote { host } => Promote(host.as_str().into()).into(),
            What::Cut { from, to, one_way } => {
                Cut { from: from.as_str().into(), to: to.as_str().into(), one_way: *one_way }.into()
            }
            What::ClockStep { host, by } => {
                ClockStep { host: host.as_str().into(), by: Draw::Fixed(Step(*by)) }.into()
            }
            What::Reorder { from, to, by } => {
                let by = Draw::Fixed(Span(Duration::from_nanos(by.unsigned_abs())));
                Slow { from: from.as_str().into(), to: to.as_str().into(), by }.into()
            }
        };
        let length = self.length().map(|length| Draw::Fixed(Span(length)));
        Fault { at: Some(Draw::Fixed(Span(self.at.since(True::ZERO)))), length, ..fault }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Pause { host } => write!(f, "pause of {host}")?,
            What::Suspend { host } => write!(f, "suspension of {host}")?,
            What::Crash { host } => write!(f, "crash of {host}")?,
            What::Restart { host } => write!(f, "restart of {host}")?,
            What::Promote { host } => write!(f, "promotion of {host}")?,
            What::Cut { from, to, one_way: true } => write!(f, "cut from {from} to {to}")?,
            What::Cut { from, to, one_way: false } => write!(f, "cut between {from} and {to}")?,
            What::ClockStep { host, by } => write!(f, "clock step of {host} by {}", Step(*by))?,
            What::Reorder { from, to, by } => {
                let (sent, by) = (self.at + BESIDE, Span(Duration::from_nanos(by.unsigned_abs())));
                let sent = Span(sent.since(True::ZERO));
                return write!(f, "message from {from} to {to}, sent at {sent}, {by} later");
            }
        }
        write!(f, " at {}", Span(self.at.since(True::ZERO)))?;
        self.length().map_or(Ok(()), |length| write!(f, " for {}", Span(length)))
    }
}

impl Serialize for Placement {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Returns the scenario with these faults in place of its own, except those that its `[hunt]`
/// keeps.
pub(super) fn placed(scenario: &Scenario, faults: &[Placement]) -> Scenario {
    let mut scenario = scenario.clone();
    let kept = scenario.hunt.iter().flat_map(|hunt| &hunt.keep);
    let kept: Vec<String> = kept.map(|name| name.as_str().to_owned()).collect();
    scenario.fault.retain(|name, _| kept.contains(name));
    let names: Vec<String> = names(&scenario.fault).take(faults.len()).collect();
    scenario.fault.extend(names.into_iter().zip(faults.iter().map(Placement::fault)));
    scenario
}

/// Returns the names of hunted faults beside other faults.
pub(super) fn names(others: &IndexMap<String, Fault>) -> impl Iterator<Item = String> {
    (1..).map(|number| format!("hunted{number}")).filter(|name| !others.contains_key(name))
}
