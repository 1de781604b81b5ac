//! Conditions: effects that last until they are ended, each with its causes.
//!
//! Every cause holds its own conditions and ends no other's, so that each of several faults that
//! overlap on one host or link lasts exactly as long as it says: a link that two have cut heals
//! when both are over, and delays of one link add up.

use std::{fmt, time::Duration};

use super::{
    clock::{ClockId, Rate},
    rule::Rule,
};

/// A lasting effect. Hosts are named; a link is the direction from one host to another.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are hosts, links and amounts, named after what they are")]
pub enum Condition {
    /// The machine has lost its power: tasks, sockets and all unsent data are gone, and no peer is
    /// notified. When no cause is left, the host's software is restarted, with the next
    /// incarnation.
    Down { host: String },
    /// The host's code does not run; its kernel still acknowledges and receives. A host that
    /// restarts is still paused.
    Paused { host: String },
    /// As `Paused`, but caused by its own process, and over when that ends.
    Blocked { host: String },
    /// The whole machine is suspended: no code, no kernel, and monotonic time stops. A host that
    /// restarts is still suspended.
    Suspended { host: String },
    /// Packets of this direction wait until it heals, including those of new connections.
    Cut { from: String, to: String },
    /// Added to the latency. Delays add up.
    Slow { from: String, to: String, by: Duration },
    /// How many packets of a million are late by one retransmission time-out. Losses of several
    /// causes are independent.
    Lossy { from: String, to: String, per_million: u32 },
    /// The rate of a clock; without one, of all. The errors of several causes add up, together with
    /// the clock's own; no clock runs backwards.
    ClockRate { host: String, clock_id: Option<ClockId>, rate: Rate },
    /// A clock is frozen; without one, of all.
    ClockFrozen { host: String, clock_id: Option<ClockId> },
    /// A message rule is in force.
    Rule(Rule),
}

impl Condition {
    /// The host whose clock it bends, which cannot be done to a process of its own.
    pub fn bends_clock_of(&self) -> Option<&str> {
        match self {
            Self::ClockRate { host, .. } | Self::ClockFrozen { host, .. } => Some(host),
            _ => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            Self::ClockRate { host, clock_id, rate } => {
                write!(f, "rate of {} of {host} {rate}", ClockId::name_or_all(*clock_id))
            }
            Self::ClockFrozen { host, clock_id } => {
                write!(f, "freeze of {} of {host}", ClockId::name_or_all(*clock_id))
            }
            Self::Rule(rule) => write!(f, "{rule}"),
        }
    }
}
