//! The verbs that every fault composes, and the handle that gives the world its orders.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    clock::{Face, Rate},
    link::Latency,
    rule::Rule,
};
use crate::time::True;

/// What can be done to the world. Hosts go by name; a link is the direction from one host to another.
///
/// Cuts, holds, pauses and suspensions nest: what two faults have cut is whole again when both are healed.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are hosts, links and amounts, named after what they are")]
pub enum Verb {
    /// The host's code is not run; its kernel goes on acknowledging and receiving.
    Pause { host: String },
    /// Ends a pause.
    Resume { host: String },
    /// The whole machine sleeps: no code, no kernel, monotonic time stands still.
    Suspend { host: String },
    /// Ends a suspension.
    Wake { host: String },
    /// The machine loses power: tasks, sockets and whatever was not sent are gone, and nobody is told.
    Crash { host: String },
    /// The process dies and the machine stays: its sockets are closed by the kernel, so peers are told.
    Kill { host: String },
    /// The process is asked to end: its code may act on [`super::HostCtx::stopping`] within this instant, then as `Kill`.
    Stop { host: String },
    /// The host's software starts anew, with the next incarnation; a host that still runs crashes first.
    Restart { host: String },
    /// Packets of this direction wait until it is healed, new connections included.
    Cut { from: String, to: String },
    /// Ends a cut: what waited goes on.
    Heal { from: String, to: String },
    /// As `Cut`, counted apart from it: a stalled path, not a partition.
    Hold { from: String, to: String },
    /// Ends a hold.
    Release { from: String, to: String },
    /// Both ends of every connection between the two hosts get a reset, and what was on its way is lost.
    Reset { one: String, other: String },
    /// How long packets travel from now on.
    Latency { from: String, to: String, latency: Latency },
    /// So much on top of the latency from now on.
    Delay { from: String, to: String, by: Duration },
    /// How many packets of a million come one retransmission time-out late from now on.
    Loss { from: String, to: String, per_million: u32 },
    /// Moves the wall clock at once.
    ClockStep { host: String, by_nanos: i64 },
    /// Moves the wall clock evenly over a time.
    ClockSlew { host: String, by_nanos: i64, over: Duration },
    /// How fast a clock runs from now on; no face means all.
    ClockRate { host: String, face: Option<Face>, rate: Rate },
    /// Stops a clock; no face means all.
    ClockFreeze { host: String, face: Option<Face> },
    /// Lets a stopped clock go on; no face means all.
    ClockUnfreeze { host: String, face: Option<Face> },
    /// Puts a message rule in force; one of the same name is replaced.
    AddRule(Rule),
    /// Takes a message rule out of force.
    RemoveRule { name: String },
    /// Ends every cut, hold, delay, loss, pause, suspension and rule. Clocks stay wrong and crashed hosts down.
    Calm,
    /// Ends the run.
    Finish,
}

impl Verb {
    /// The host whose software it starts, stops or ends.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Pause { host }
            | Self::Resume { host }
            | Self::Crash { host }
            | Self::Kill { host }
            | Self::Stop { host }
            | Self::Restart { host } => Some(host),
            _ => None,
        }
    }

    /// Whether it can be done where neither time nor the network is the world's own: to code, but not to clocks, links and
    /// messages.
    pub fn works_on_real_hosts(&self) -> bool {
        matches!(
            self,
            Self::Pause { .. }
                | Self::Resume { .. }
                | Self::Crash { .. }
                | Self::Kill { .. }
                | Self::Stop { .. }
                | Self::Restart { .. }
                | Self::Calm
                | Self::Finish
        )
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let face =
            |face: &Option<Face>| face.map_or("all clocks".into(), |face| format!("{face:?}").to_lowercase());
        match self {
            Self::Pause { host } => write!(f, "pause {host}"),
            Self::Resume { host } => write!(f, "resume {host}"),
            Self::Suspend { host } => write!(f, "suspend {host}"),
            Self::Wake { host } => write!(f, "wake {host}"),
            Self::Crash { host } => write!(f, "crash {host}"),
            Self::Kill { host } => write!(f, "kill {host}"),
            Self::Stop { host } => write!(f, "stop {host}"),
            Self::Restart { host } => write!(f, "restart {host}"),
            Self::Cut { from, to } => write!(f, "cut {from} -> {to}"),
            Self::Heal { from, to } => write!(f, "heal {from} -> {to}"),
            Self::Hold { from, to } => write!(f, "hold {from} -> {to}"),
            Self::Release { from, to } => write!(f, "release {from} -> {to}"),
            Self::Reset { one, other } => write!(f, "reset {one} <-> {other}"),
            Self::Latency { from, to, latency } => write!(f, "latency {from} -> {to} {latency}"),
            Self::Delay { from, to, by } => write!(f, "delay {from} -> {to} by {by:?}"),
            Self::Loss { from, to, per_million } => {
                write!(f, "loss {from} -> {to} {per_million} of a million")
            }
            Self::ClockStep { host, by_nanos } => write!(f, "step wall of {host} by {by_nanos}ns"),
            Self::ClockSlew { host, by_nanos, over } => {
                write!(f, "slew wall of {host} by {by_nanos}ns over {over:?}")
            }
            Self::ClockRate { host, face: of, rate } => write!(f, "rate of {} of {host} {rate}", face(of)),
            Self::ClockFreeze { host, face: of } => write!(f, "freeze {} of {host}", face(of)),
            Self::ClockUnfreeze { host, face: of } => write!(f, "unfreeze {} of {host}", face(of)),
            Self::AddRule(rule) => write!(f, "add {rule}"),
            Self::RemoveRule { name } => write!(f, "remove rule {name}"),
            Self::Calm => f.write_str("calm"),
            Self::Finish => f.write_str("finish"),
        }
    }
}

#[derive(Debug, Default)]
struct Orders {
    now: True,
    next: u64,
    pending: BTreeMap<(True, u64), Verb>,
}

/// Gives the world its orders; cheap to clone, and usable from anywhere: the runner, a hook, code on a host.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<Mutex<Orders>>);

impl Control {
    /// Does it at this true instant, or now if that has passed. Orders for one instant are done as they were given.
    pub fn at(&self, at: True, verb: Verb) {
        self.with(|orders| {
            let number = orders.next;
            orders.next += 1;
            orders.pending.insert((at.max(orders.now), number), verb);
        });
    }

    /// Does it as soon as the code that asks gives way.
    pub fn now(&self, verb: Verb) {
        self.after(Duration::ZERO, verb);
    }

    /// Does it so much true time from now.
    pub fn after(&self, delay: Duration, verb: Verb) {
        let now = self.with(|orders| orders.now);
        self.at(now + delay, verb);
    }

    /// Cuts both directions between two hosts.
    pub fn cut_both(&self, at: True, one: &str, other: &str) {
        self.at(at, Verb::Cut { from: one.into(), to: other.into() });
        self.at(at, Verb::Cut { from: other.into(), to: one.into() });
    }

    /// Heals both directions between two hosts.
    pub fn heal_both(&self, at: True, one: &str, other: &str) {
        self.at(at, Verb::Heal { from: one.into(), to: other.into() });
        self.at(at, Verb::Heal { from: other.into(), to: one.into() });
    }

    pub(super) fn set_now(&self, now: True) {
        self.with(|orders| orders.now = now);
    }

    pub(super) fn next_due(&self) -> Option<True> {
        self.with(|orders| orders.pending.first_key_value().map(|(&(at, _), _)| at))
    }

    /// The next order that is due.
    pub(super) fn take_due(&self, now: True) -> Option<Verb> {
        self.with(|orders| {
            let entry = orders.pending.first_entry()?;
            (entry.key().0 <= now).then(|| entry.remove())
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Orders) -> T) -> T {
        f(&mut self.0.lock().expect("nothing panics while it gives orders"))
    }
}
