//! Instants of the four clocks a host lives by, in nanoseconds. They are different types, so that
//! one host's wall clock cannot be compared with another clock's monotonic time by accident.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub, SubAssign},
    time::Duration,
};

/// Nanoseconds of a duration, capped at what an `i64` holds (292 years).
const fn nanos_of(duration: Duration) -> i64 {
    let nanos = duration.as_nanos();
    if nanos > i64::MAX as u128 { i64::MAX } else { nanos as i64 }
}

macro_rules! instants {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// Arithmetic saturates: an instant that comes from a wire or a file may be absurd, it may
        /// not panic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(i64);

        impl $name {
            /// The clock's origin.
            pub const ZERO: Self = Self(0);
            /// The last instant that can be represented, 292 years after the origin.
            pub const MAX: Self = Self(i64::MAX);

            /// The instant so many nanoseconds after the origin.
            pub const fn from_nanos(nanos: i64) -> Self {
                Self(nanos)
            }
            /// The instant so many microseconds after the origin.
            pub const fn from_micros(micros: i64) -> Self {
                Self(micros.saturating_mul(1_000))
            }
            /// The instant so many milliseconds after the origin.
            pub const fn from_millis(millis: i64) -> Self {
                Self(millis.saturating_mul(1_000_000))
            }
            /// The instant so many seconds after the origin.
            pub const fn from_secs(secs: i64) -> Self {
                Self(secs.saturating_mul(1_000_000_000))
            }
            /// Nanoseconds since the origin.
            pub const fn as_nanos(self) -> i64 {
                self.0
            }
            /// Whole microseconds since the origin, rounded down.
            pub const fn as_micros(self) -> i64 {
                self.0.div_euclid(1_000)
            }
            /// Whole milliseconds since the origin, rounded down.
            pub const fn as_millis(self) -> i64 {
                self.0.div_euclid(1_000_000)
            }
            /// Whole seconds since the origin, rounded down.
            pub const fn as_secs(self) -> i64 {
                self.0.div_euclid(1_000_000_000)
            }
            /// How long ago `earlier` was; zero if it is not earlier.
            pub const fn since(self, earlier: Self) -> Duration {
                let nanos = self.0 as i128 - earlier.0 as i128;
                // Two i64 are at most 2^64 - 1 apart, which a u64 holds.
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
        /// Seconds with nine decimals, so that columns line up and nothing is lost.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (sign, nanos) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
                f.pad(&format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000))
            }
        }
    )* };
}

instants! {
    /// What a host's wall clock shows: nanoseconds since the Unix epoch. It steps, slews and may be
    /// plainly wrong.
    Wall;
    /// What a host's `CLOCK_MONOTONIC` shows: nanoseconds since some origin of its own. It never
    /// goes back, and it stands still while the host is suspended.
    Monotonic;
    /// What a host's `CLOCK_BOOTTIME` shows: as [`Monotonic`], but it continues while the host is
    /// suspended.
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
        // Redis truncates towards the past, also before the epoch.
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
