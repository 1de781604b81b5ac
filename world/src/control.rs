//! The verbs that compose every fault, and the handle to order them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    cause::Cause,
    clock::{ClockId, Rate},
    condition::Condition,
    link::Latency,
    time::True,
};

/// An action on the world. Hosts are named; a link is the direction from one host to another.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are hosts, links and amounts, named after what they are")]
pub enum Verb {
    /// Begins a condition, which lasts until this cause ends it.
    Begin { cause: Cause, condition: Condition },
    /// Ends the condition for this cause; it continues if another cause holds it.
    End { cause: Cause, condition: Condition },
    /// The process dies and the machine continues: its kernel closes its sockets, so peers are
    /// notified.
    Kill { host: String },
    /// The process is asked to end: its code may react to [`crate::HostCtx::stopping`] within this
    /// instant, then it ends as with `Kill`.
    Stop { host: String },
    /// Restarts the host's software with the next incarnation, whatever kept it down; running
    /// software crashes first.
    Restart { host: String },
    /// Both ends of every connection between the two hosts get a reset, and packets on their way
    /// are lost.
    Reset { one: String, other: String },
    /// Makes an address that hosts dial lead to this host from now on, or without one nowhere: a
    /// host that dials it gets `NotFound`. Connections opened before are unchanged.
    Point { address: String, host: Option<String> },
    /// Sets the latency from now on.
    Latency { from: String, to: String, latency: Latency },
    /// Moves the wall clock in one step.
    ClockStep { host: String, by_nanos: i64 },
    /// Moves the wall clock evenly over a time.
    ClockSlew { host: String, by_nanos: i64, over: Duration },
    /// Sets the own rate of a clock, or of all clocks without `clock_id`, from now on.
    ClockRate { host: String, clock_id: Option<ClockId>, rate: Rate },
    /// Ends every cut, delay, loss, pause, suspension and rule. Clocks stay wrong, and crashed
    /// hosts stay down.
    Calm,
    /// Ends the run.
    Finish,
}

impl Verb {
    /// Returns the host whose clock it changes, which is impossible for a real server process.
    pub fn bends_clock_of(&self) -> Option<&str> {
        match self {
            Self::Begin { condition, .. } | Self::End { condition, .. } => condition.bends_clock_of(),
            Self::ClockStep { host, .. } | Self::ClockSlew { host, .. } | Self::ClockRate { host, .. } => {
                Some(host)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { cause, condition } => write!(f, "{condition}, by {cause}"),
            Self::End { cause, condition } => write!(f, "end of {condition}, by {cause}"),
            Self::Kill { host } => write!(f, "kill {host}"),
            Self::Stop { host } => write!(f, "stop {host}"),
            Self::Restart { host } => write!(f, "restart {host}"),
            Self::Reset { one, other } => write!(f, "reset {one} <-> {other}"),
            Self::Point { address, host: Some(host) } => write!(f, "point {address} to {host}"),
            Self::Point { address, host: None } => write!(f, "point {address} nowhere"),
            Self::Latency { from, to, latency } => write!(f, "latency {from} -> {to} {latency}"),
            Self::ClockStep { host, by_nanos } => write!(f, "step wall of {host} by {by_nanos}ns"),
            Self::ClockSlew { host, by_nanos, over } => {
                write!(f, "slew wall of {host} by {by_nanos}ns over {over:?}")
            }
            Self::ClockRate { host, clock_id, rate } => {
                write!(f, "rate of {} of {host} {rate}", ClockId::name_or_all(*clock_id))
            }
            Self::Calm => f.write_str("calm"),
            Self::Finish => f.write_str("finish"),
        }
    }
}

impl Condition {
    /// Returns the verb that begins it.
    pub fn begin(self, cause: impl Into<Cause>) -> Verb {
        Verb::Begin { cause: cause.into(), condition: self }
    }

    /// Returns the verb that ends it for this cause.
    pub fn end(self, cause: impl Into<Cause>) -> Verb {
        Verb::End { cause: cause.into(), condition: self }
    }
}

#[derive(Debug, Default)]
struct Schedule {
    now: True,
    next: u64,
    pending: BTreeMap<(True, u64), Verb>,
}

/// Orders verbs; cheap to clone, and usable from anywhere: the runner, a hook, code on a host.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<Mutex<Schedule>>);

impl Control {
    /// Orders a verb for this true instant, or for now if that has passed. Verbs of one instant are
    /// executed in the order given.
    pub fn at(&self, at: True, verb: Verb) {
        self.with(|schedule| {
            let number = schedule.next;
            schedule.next += 1;
            schedule.pending.insert((at.max(schedule.now), number), verb);
        });
    }

    /// Orders a verb for now: it is executed as soon as the calling code yields.
    pub fn now(&self, verb: Verb) {
        self.after(Duration::ZERO, verb);
    }

    /// Orders a verb for `delay` of true time from now.
    pub fn after(&self, delay: Duration, verb: Verb) {
        let now = self.with(|schedule| schedule.now);
        self.at(now + delay, verb);
    }

    pub(crate) fn set_now(&self, now: True) {
        self.with(|schedule| schedule.now = now);
    }

    pub(crate) fn next_due(&self) -> Option<True> {
        self.with(|schedule| schedule.pending.first_key_value().map(|(&(at, _), _)| at))
    }

    /// Takes the next verb that is due.
    pub(crate) fn take_due(&self, now: True) -> Option<Verb> {
        self.with(|schedule| {
            let entry = schedule.pending.first_entry()?;
            (entry.key().0 <= now).then(|| entry.remove())
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Schedule) -> T) -> T {
        f(&mut self.0.lock().expect("nothing panics while it schedules verbs"))
    }
}
