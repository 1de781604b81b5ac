//! The minimum and maximum that the client accepts for each quantity.
//!
//! Every call checks its arguments by this table. Programs can use it to check settings before they
//! create a client.
//!
//! ```
//! use lockstorm_client::limits;
//! use std::time::Duration;
//! assert!(limits::LEASE.takes(Duration::from_secs(30)));
//! assert!(!limits::LEASE.takes(Duration::ZERO));
//! ```

use std::time::Duration;

use crate::error::{Error, Result};

/// The minimum and maximum that the client accepts for a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits<T> {
    /// The name of the quantity in errors.
    pub what: &'static str,
    /// The smallest accepted value.
    pub least: T,
    /// The largest accepted value.
    pub most: T,
}

impl<T: Copy + PartialOrd> Limits<T> {
    /// Returns true if the client accepts `value`.
    pub fn takes(&self, value: T) -> bool {
        self.least <= value && value <= self.most
    }
}

impl Limits<Duration> {
    pub(crate) fn check(&self, value: Duration) -> Result<()> {
        if self.takes(value) {
            return Ok(());
        }
        Err(Error::config(format!("the {} must be from 10 ms to ten years, not {value:?}", self.what)))
    }
}

/// 10 ms. Redis counts whole milliseconds, and a lease of zero would delete the key. A lease as
/// short as its [`drift_margin`](crate::wire::drift_margin) leaves no time to hold the lock.
const SHORTEST: Duration = Duration::from_millis(10);

/// Ten years. A longer time was probably given in the wrong unit, and the server's clock must not
/// overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

const fn length(what: &'static str) -> Limits<Duration> {
    Limits { what, least: SHORTEST, most: LONGEST }
}

/// Limits the lease of an acquisition, of an extension and of a permit.
pub const LEASE: Limits<Duration> = length("lease");

/// Limits [`Builder::watchdog_timeout`](crate::Builder::watchdog_timeout), the lease that the
/// watchdog renews.
pub const WATCHDOG_TIMEOUT: Limits<Duration> = length("watchdog time-out");

/// Limits [`Builder::call_timeout`](crate::Builder::call_timeout).
pub const CALL_TIMEOUT: Limits<Duration> = length("call time-out");

/// Limits [`Builder::response_timeout`](crate::Builder::response_timeout).
pub const RESPONSE_TIMEOUT: Limits<Duration> = length("response time-out");

/// Limits [`Builder::connect_timeout`](crate::Builder::connect_timeout).
pub const CONNECT_TIMEOUT: Limits<Duration> = length("connect time-out");

/// Limits [`Builder::subscription_timeout`](crate::Builder::subscription_timeout).
pub const SUBSCRIPTION_TIMEOUT: Limits<Duration> = length("subscription time-out");

/// Limits [`Builder::scan_interval`](crate::Builder::scan_interval).
pub const SCAN_INTERVAL: Limits<Duration> = length("scan interval");

/// Limits the interval of a [`RateLimiter`](crate::RateLimiter).
pub const RATE_INTERVAL: Limits<Duration> = length("interval");

/// Limits the permits that a [`RateLimiter`](crate::RateLimiter) grants in an interval. Redisson
/// counts them in 32 bits with a sign.
pub const RATE: Limits<u32> = Limits { what: "rate", least: 1, most: i32::MAX.unsigned_abs() };

/// Limits the permits of one request to a [`Semaphore`](crate::Semaphore).
pub const PERMITS: Limits<u32> = Limits { what: "number of permits", least: 1, most: u32::MAX };

/// Limits the permits of one request to a [`PermitSemaphore`](crate::PermitSemaphore), so that the
/// script that writes their ids does not keep a server busy for long.
pub const PERMITS_WITH_IDS: Limits<u32> = Limits { what: "number of permits", least: 1, most: 10_000 };

/// Limits the count to which a [`Latch`](crate::Latch) is set: with zero it would be open already.
pub const LATCH_COUNT: Limits<u32> = Limits { what: "count of the latch", least: 1, most: u32::MAX };

/// Limits the number of values that are [locked together](crate::Client::faster_multi_lock), so
/// that scripts do not keep a server busy for long.
pub const VALUES: Limits<usize> = Limits { what: "number of values", least: 1, most: 1_000 };

/// Limits the bytes of the name of a lock, both as the application gives it and as the [name
/// mapper](crate::Builder::name_mapper) returns it. An empty name is refused because all callers
/// that forget to name their lock would share it. The maximum is up to the server.
pub const NAME_LENGTH: Limits<usize> = Limits { what: "length of the name", least: 1, most: usize::MAX };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_taken_and_what_is_beyond_them_is_not() {
        let nano = Duration::from_nanos(1);
        for length in [
            LEASE,
            WATCHDOG_TIMEOUT,
            CALL_TIMEOUT,
            RESPONSE_TIMEOUT,
            CONNECT_TIMEOUT,
            SUBSCRIPTION_TIMEOUT,
            SCAN_INTERVAL,
            RATE_INTERVAL,
        ] {
            for (value, taken) in [
                (Duration::ZERO, false),
                (length.least - nano, false),
                (length.least, true),
                (length.most, true),
                (length.most + nano, false),
                (Duration::MAX, false),
            ] {
                assert_eq!(length.check(value).is_ok(), taken, "{} of {value:?}", length.what);
            }
        }
        for number in [RATE, PERMITS, PERMITS_WITH_IDS, LATCH_COUNT] {
            assert!(!number.takes(0), "no {}", number.what);
            assert!(number.takes(number.least) && number.takes(number.most), "{}", number.what);
            if let Some(more) = number.most.checked_add(1) {
                assert!(!number.takes(more), "{more} as {}", number.what);
            }
        }
        let said = LEASE.check(Duration::ZERO).unwrap_err().to_string();
        assert_eq!(said, "bad configuration: the lease must be from 10 ms to ten years, not 0ns");
    }
}
