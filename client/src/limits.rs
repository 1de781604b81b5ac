//! The least and the most that the client takes of each quantity.
//!
//! One table, by which every call checks what it is given, for programs that check settings before
//! they make a client of them.
//!
//! ```
//! use lockstorm_client::limits;
//! use std::time::Duration;
//! assert!(limits::LEASE.takes(Duration::from_secs(30)));
//! assert!(!limits::LEASE.takes(Duration::ZERO));
//! ```

use std::time::Duration;

use crate::error::{Error, Result};

/// The least and the most that the client takes of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits<T> {
    /// The quantity, as errors call it.
    pub what: &'static str,
    /// The least that is taken.
    pub least: T,
    /// The most that is taken.
    pub most: T,
}

impl<T: Copy + PartialOrd> Limits<T> {
    /// Tells if the client takes so much.
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

/// Redis counts whole milliseconds, a lease of zero would delete the key, and of one as short as
/// [`drift_margin`](crate::wire::drift_margin) nothing is left to hold.
const SHORTEST: Duration = Duration::from_millis(10);

/// Ten years. What is longer was written in another unit than was meant, and the server's clock
/// must not overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

const fn length(what: &'static str) -> Limits<Duration> {
    Limits { what, least: SHORTEST, most: LONGEST }
}

/// The lease of an acquisition, of an extension and of a permit.
pub const LEASE: Limits<Duration> = length("lease");

/// [`Builder::watchdog_timeout`](crate::Builder::watchdog_timeout), the lease that the watchdog
/// renews.
pub const WATCHDOG_TIMEOUT: Limits<Duration> = length("watchdog time-out");

/// [`Builder::call_timeout`](crate::Builder::call_timeout).
pub const CALL_TIMEOUT: Limits<Duration> = length("call time-out");

/// [`Builder::response_timeout`](crate::Builder::response_timeout).
pub const RESPONSE_TIMEOUT: Limits<Duration> = length("response time-out");

/// [`Builder::connect_timeout`](crate::Builder::connect_timeout).
pub const CONNECT_TIMEOUT: Limits<Duration> = length("connect time-out");

/// [`Builder::subscription_timeout`](crate::Builder::subscription_timeout).
pub const SUBSCRIPTION_TIMEOUT: Limits<Duration> = length("subscription time-out");

/// [`Builder::scan_interval`](crate::Builder::scan_interval).
pub const SCAN_INTERVAL: Limits<Duration> = length("scan interval");

/// The interval of a [`RateLimiter`](crate::RateLimiter).
pub const RATE_INTERVAL: Limits<Duration> = length("interval");

/// The permits that a [`RateLimiter`](crate::RateLimiter) grants in an interval, which Redisson
/// counts in 32 bits with a sign.
pub const RATE: Limits<u32> = Limits { what: "rate", least: 1, most: i32::MAX.unsigned_abs() };

/// The permits that a [`Semaphore`](crate::Semaphore) is asked for at once.
pub const PERMITS: Limits<u32> = Limits { what: "number of permits", least: 1, most: u32::MAX };

/// The permits that a [`PermitSemaphore`](crate::PermitSemaphore) is asked for at once: few enough
/// that the script which writes their ids does not keep a server busy for long.
pub const PERMITS_WITH_IDS: Limits<u32> = Limits { what: "number of permits", least: 1, most: 10_000 };

/// The count of a [`Latch`](crate::Latch) that is set: one of zero is open already.
pub const LATCH_COUNT: Limits<u32> = Limits { what: "count of the latch", least: 1, most: u32::MAX };

/// The values that are [locked together](crate::Client::faster_multi_lock): few enough that scripts
/// do not keep a server busy for long.
pub const VALUES: Limits<usize> = Limits { what: "number of values", least: 1, most: 1_000 };

/// The bytes of the name of a lock, as the application has it and as the [name
/// mapper](crate::Builder::name_mapper) makes it: a lock without a name would be one that all who
/// forget theirs share. The most is up to the server.
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
