//! Conditions: effects that last until they are ended, each with its causes.
//!
//! A cause holds its own conditions and does not end those of others. So each of several
//! overlapping faults on a host or link lasts exactly as long as it says: a link cut by two faults
//! heals when both are over, and delays of one link add up.

use std::{fmt, time::Duration};

use crate::{
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
    /// Like `Paused`, but caused by the host's own process, and over when that ends.
    Blocked { host: String },
    /// The whole machine is suspended: no code, no kernel, and monotonic time stops. A host that
    /// restarts is still suspended.
    Suspended { host: String },
    /// Packets of this direction wait until the cut heals, including those of new connections.
    Cut { from: String, to: String },
    /// Increases the latency by `by`. Delays add up.
    Slow { from: String, to: String, by: Duration },
    /// Of a million packets, `per_million` are late by one retransmission timeout. Losses of
    /// several causes are independent.
    Lossy { from: String, to: String, per_million: u32 },
    /// Sets the rate of a clock, or of all clocks without `clock_id`. The errors of several causes
    /// and the clock's own error add up; no clock runs backwards.
    ClockRate { host: String, clock_id: Option<ClockId>, rate: Rate },
    /// Freezes a clock, or all clocks without `clock_id`.
    ClockFrozen { host: String, clock_id: Option<ClockId> },
    /// Applies a message rule.
    Rule(Rule),
}

impl Condition {
    /// Returns the host whose clock it changes, which is impossible for a real server process.
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
