//! What no step, workload or lock may ask for, whatever else it says.

use std::time::Duration;

use super::{Algorithm, Lock};
use crate::units::Span;

/// The shortest lease, as of the client: of a shorter one nothing is left when the allowance for clocks and the way has been taken off.
const LEASE_MIN: Span = Span::millis(10);

/// The shortest time between two of anything that is done again and again.
const PERIOD_MIN: Duration = Duration::from_micros(10);

/// What is wrong with a table: the key that is mistaken, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The key inside the table; empty for the whole.
    pub key: &'static str,
    /// What is wrong and what was expected.
    pub message: String,
}

impl Wrong {
    /// A mistake of one key.
    pub fn at(key: &'static str, message: impl Into<String>) -> Wrong {
        Wrong { key, message: message.into() }
    }
}

/// Checks that a lease lasts long enough for a client to ask for it.
pub(super) fn lease(key: &'static str, lease: Option<Span>) -> Result<(), Wrong> {
    match lease {
        Some(lease) if lease < LEASE_MIN => Err(Wrong::at(
            key,
            format!("a lease of {lease} is too short to hold anything: give at least {LEASE_MIN}"),
        )),
        _ => Ok(()),
    }
}

/// Checks the lease that a step asks for. None at all is refused by the production client; what a library on trial makes of it, or a model, is
/// for a scenario to find out.
pub(super) fn asked_lease(asked: Option<Span>, lock: &Lock) -> Result<(), Wrong> {
    match (asked, lock.subject.algorithm) {
        (Some(Span(Duration::ZERO)), Algorithm::Client) => Err(Wrong::at(
            "lease",
            format!(
                "the production client refuses a lease of 0s: give at least {LEASE_MIN}, or a model as `lock.subject`, whose place \
                 a library takes in a trial"
            ),
        )),
        (Some(Span(Duration::ZERO)), _) => Ok(()),
        _ => lease("lease", asked),
    }
}

/// Checks that a repetition has a period, so that it does not repeat without end at one instant.
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
