//! Instants of the three clocks of a host and of true time, in nanoseconds. They are different
//! types, so that a wall clock cannot be compared with a monotonic clock by accident.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub, SubAssign},
    time::Duration,
};

/// Returns the nanoseconds of a duration, capped at the maximum of an `i64` (292 years).
const fn nanos_of(duration: Duration) -> i64 {
    let nanos = duration.as_nanos();
    if nanos > i64::MAX as u128 { i64::MAX } else { nanos as i64 }
}

macro_rules! instants {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// Arithmetic saturates: an instant from a wire or a file may be absurd, but must not cause
        /// a panic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(i64);

        impl $name {
            /// The clock's origin.
            pub const ZERO: Self = Self(0);
            /// The last instant that can be represented, 292 years after the origin.
            pub const MAX: Self = Self(i64::MAX);

            /// Returns the instant `nanos` nanoseconds after the origin.
            pub const fn from_nanos(nanos: i64) -> Self {
                Self(nanos)
            }
            /// Returns the instant `micros` microseconds after the origin.
            pub const fn from_micros(micros: i64) -> Self {
                Self(micros.saturating_mul(1_000))
            }
            /// Returns the instant `millis` milliseconds after the origin.
            pub const fn from_millis(millis: i64) -> Self {
                Self(millis.saturating_mul(1_000_000))
            }
            /// Returns the instant `secs` seconds after the origin.
            pub const fn from_secs(secs: i64) -> Self {
                Self(secs.saturating_mul(1_000_000_000))
            }
            /// Returns the nanoseconds since the origin.
            pub const fn as_nanos(self) -> i64 {
                self.0
            }
            /// Returns the whole microseconds since the origin, rounded down.
            pub const fn as_micros(self) -> i64 {
                self.0.div_euclid(1_000)
            }
            /// Returns the whole milliseconds since the origin, rounded down.
            pub const fn as_millis(self) -> i64 {
                self.0.div_euclid(1_000_000)
            }
            /// Returns the whole seconds since the origin, rounded down.
            pub const fn as_secs(self) -> i64 {
                self.0.div_euclid(1_000_000_000)
            }
            /// Returns the time since `earlier`; zero if that is not earlier.
            pub const fn since(self, earlier: Self) -> Duration {
                let nanos = self.0 as i128 - earlier.0 as i128;
                // Two i64 differ by at most 2^64 - 1, which fits a u64.
                if nanos > 0 { Duration::from_nanos(nanos as u64) } else { Duration::ZERO }
            }
        }

        impl Add<Duration> for $name {
            type Output = Self;
            fn add(self, duration: Duration) -> Self {
                Self(self.0.saturating_add(nanos_of(duration)))
            }
        }
        impl Sub<Duration> for $name {
            type Output = Self;
            fn sub(self, duration: Duration) -> Self {
                Self(self.0.saturating_sub(nanos_of(duration)))
            }
        }
        impl AddAssign<Duration> for $name {
            fn add_assign(&mut self, duration: Duration) {
                *self = *self + duration;
            }
        }
        impl SubAssign<Duration> for $name {
            fn sub_assign(&mut self, duration: Duration) {
                *self = *self - duration;
            }
        }
        /// Prints seconds with nine decimals, so that columns line up and nothing is lost.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (sign, nanos) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
                f.pad(&format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000))
            }
        }
    )* };
}

instants! {
    /// A reading of a host's wall clock: nanoseconds since the Unix epoch. The clock steps, slews
    /// and may be plainly wrong.
    Wall;
    /// A reading of a host's `CLOCK_MONOTONIC`: nanoseconds since an origin of its own. The clock
    /// never goes back, and stops while the host is suspended.
    Monotonic;
    /// A reading of a host's `CLOCK_BOOTTIME`: like [`Monotonic`], but the clock continues while
    /// the host is suspended.
    Boottime;
    /// True time: nanoseconds since the world began. Only the world and the recorder may read it.
    True;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_reads_back_in_every_unit() {
        let at = Wall::from_micros(1_700_000_000_123_456);
        assert_eq!(at.as_nanos(), 1_700_000_000_123_456_000);
        assert_eq!(at.as_micros(), 1_700_000_000_123_456);
        assert_eq!(at.as_millis(), 1_700_000_000_123);
        assert_eq!(at.as_secs(), 1_700_000_000);
        // Whole milliseconds are rounded towards the past, also before the epoch.
        assert_eq!(Wall::from_nanos(-1).as_millis(), -1);
    }

    #[test]
    fn arithmetic_saturates_and_never_panics() {
        assert_eq!(True::MAX + Duration::MAX, True::MAX);
        assert_eq!(True::from_secs(i64::MAX), True::MAX);
        assert_eq!(True::from_secs(2).since(True::from_secs(5)), Duration::ZERO);
        assert_eq!(True::MAX.since(True::from_nanos(i64::MIN)), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn instants_print_as_seconds() {
        assert_eq!(True::from_micros(1_500_000).to_string(), "1.500000000");
        assert_eq!(Wall::from_nanos(-500_000_000).to_string(), "-0.500000000");
        assert_eq!(format!("{:>14}", True::from_millis(3)), "   0.003000000");
    }
}
