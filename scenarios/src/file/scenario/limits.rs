//! The limits that apply to every step, workload and lock.
//!
//! A file with the production client on trial must not ask for anything that the client refuses, by
//! the client's own table of limits. Otherwise the file would be accepted, and then each of its
//! calls would fail.

use std::time::Duration;

use lockstorm_client::limits::{LEASE, Limits};

use super::{Algorithm, Lock};
use crate::units::Span;

/// The most permits that a step takes at a time, of any kind: a run tracks each of them.
pub(super) const PERMITS_AT_ONCE_MAX: u32 = lockstorm_client::limits::PERMITS_WITH_IDS.most;

/// The shortest period of a repetition.
const PERIOD_MIN: Duration = Duration::from_micros(10);

/// A mistake in a table: its key and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The key inside the table; empty for the whole table.
    pub key: &'static str,
    /// The mistake, and the expected input.
    pub message: String,
}

impl Wrong {
    /// Makes a mistake of one key.
    pub fn at(key: &'static str, message: impl Into<String>) -> Wrong {
        Wrong { key, message: message.into() }
    }
}

/// Returns true if the production client is on trial, so that its limits apply.
pub(super) fn are_of_client(lock: &Lock) -> bool {
    lock.subject.algorithm == Algorithm::Client
}

/// Checks that the subject of the lock accepts a lease. The minimum applies to models as well,
/// because nothing is left of a shorter lease after the allowances for clock drift and for the
/// latency.
pub(super) fn lease(key: &'static str, lease: Option<Span>, lock: &Lock) -> Result<(), Wrong> {
    let least = Span(LEASE.least);
    match lease {
        Some(lease) if lease < least => Err(Wrong::at(
            key,
            format!("a lease of {lease} is too short to hold anything: give at least {least}"),
        )),
        _ if are_of_client(lock) => length(key, &LEASE, lease),
        _ => Ok(()),
    }
}

/// Checks that the production client accepts a length of time.
pub(super) fn length(
    key: &'static str,
    limits: &Limits<Duration>,
    length: Option<Span>,
) -> Result<(), Wrong> {
    let Some(length) = length.filter(|length| !limits.takes(length.0)) else { return Ok(()) };
    let (what, least, most) = (limits.what, Span(limits.least), Span(limits.most));
    let message = if length < least {
        format!("{} {what} of {length} is too short: give at least {least}", article(what))
    } else {
        format!("{} {what} of {length} is too long: give at most {most}", article(what))
    };
    Err(Wrong::at(key, message))
}

fn article(what: &str) -> &'static str {
    if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Checks that the production client accepts a number.
pub(super) fn number(key: &'static str, limits: &Limits<u32>, number: Option<u32>) -> Result<(), Wrong> {
    match number {
        Some(number) if !limits.takes(number) => {
            let Limits { what, least, most } = limits;
            Err(Wrong::at(key, format!("the {what} is from {least} to {most}, not {number}")))
        }
        _ => Ok(()),
    }
}

/// Checks the lease that a step asks for. The production client refuses a lease of zero. The
/// reaction of a model, or of a library on trial, is for a scenario to find out.
pub(super) fn asked_lease(asked: Option<Span>, lock: &Lock) -> Result<(), Wrong> {
    match (asked, lock.subject.algorithm) {
        (Some(Span(Duration::ZERO)), Algorithm::Client) => Err(Wrong::at(
            "lease",
            format!(
                "the production client refuses a lease of 0s: give at least {}, or a model as \
                 `lock.subject`, whose place a library takes in a trial",
                Span(LEASE.least)
            ),
        )),
        (Some(Span(Duration::ZERO)), _) => Ok(()),
        _ => lease("lease", asked, lock),
    }
}

/// Checks that a repetition has a period, so that it cannot repeat without end at one instant.
pub(super) fn period(key: &'static str, period: Option<Span>) -> Result<(), Wrong> {
    match period {
        Some(period) if period.0 < PERIOD_MIN => {
            let least = Span(PERIOD_MIN);
            let message =
                format!("{period} is too short to do something again and again: give at least {least}");
            Err(Wrong::at(key, message))
        }
        _ => Ok(()),
    }
}
