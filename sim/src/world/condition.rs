//! What lasts in the world until it is ended, and what each of it is due to.
//!
//! Every cause keeps up its own conditions and ends no other's, so that faults which overlap on one host or link are each in
//! force for as long as they last: what two have cut is whole again when both are over, and delays of one link add up.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    clock::{Face, Rate},
    control::Verb,
    rule::Rule,
};

/// What a condition is due to, such as one occurrence of a fault. On one target a cause counts once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause(Arc<str>);

impl<S: AsRef<str>> From<S> for Cause {
    fn from(name: S) -> Cause {
        Cause(name.as_ref().into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What can be kept up for a while. Hosts go by name; a link is the direction from one host to another.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are hosts, links and amounts, named after what they are")]
pub enum Condition {
    /// The machine has lost its power: tasks, sockets and all unsent data are gone, and no peer is notified. When no cause is
    /// left, the host's software starts anew, with the next incarnation.
    Down { host: String },
    /// The host's code is not run; its kernel goes on acknowledging and receiving. A host that comes up is still paused.
    Paused { host: String },
    /// As `Paused`, by the doing of its own process, and over when that ends.
    Blocked { host: String },
    /// The whole machine sleeps: no code, no kernel, monotonic time stands still. A host that comes up still sleeps.
    Suspended { host: String },
    /// Packets of this direction wait until it is whole again, new connections included.
    Cut { from: String, to: String },
    /// So much on top of the latency. Delays add up.
    Slow { from: String, to: String, by: Duration },
    /// How many packets of a million come one retransmission time-out late. A packet that escapes one loss may meet another.
    Lossy { from: String, to: String, per_million: u32 },
    /// How fast a clock runs; no face means all. What several are off true time adds up, with what the clock is off by itself;
    /// no clock runs backwards.
    ClockRate { host: String, face: Option<Face>, rate: Rate },
    /// A clock stands still; no face means all.
    ClockFrozen { host: String, face: Option<Face> },
    /// A message rule is in force.
    Rule(Rule),
}

impl Condition {
    /// The order that begins it.
    pub fn begin(self, cause: impl Into<Cause>) -> Verb {
        Verb::Begin { cause: cause.into(), condition: self }
    }

    /// The order that ends it, as far as it is due to this cause.
    pub fn end(self, cause: impl Into<Cause>) -> Verb {
        Verb::End { cause: cause.into(), condition: self }
    }

    /// Whether it can be had where neither time nor the network is the world's own.
    pub fn works_on_real_hosts(&self) -> bool {
        matches!(self, Self::Down { .. } | Self::Paused { .. } | Self::Blocked { .. })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |face: &Option<Face>| face.map_or("all clocks".into(), |face| format!("{face:?}").to_lowercase());
        match self {
            Self::Down { host } => write!(f, "crash of {host}"),
            Self::Paused { host } => write!(f, "pause of {host}"),
            Self::Blocked { host } => write!(f, "blocking of {host}"),
            Self::Suspended { host } => write!(f, "suspension of {host}"),
            Self::Cut { from, to } => write!(f, "cut {from} -> {to}"),
            Self::Slow { from, to, by } => write!(f, "delay {from} -> {to} by {by:?}"),
            Self::Lossy { from, to, per_million } => {
                write!(f, "loss {from} -> {to} of {per_million} of a million")
            }
            Self::ClockRate { host, face, rate } => write!(f, "rate of {} of {host} {rate}", name(face)),
            Self::ClockFrozen { host, face } => write!(f, "freeze of {} of {host}", name(face)),
            Self::Rule(rule) => write!(f, "{rule}"),
        }
    }
}
