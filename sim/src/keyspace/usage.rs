//! The last access of a key and its frequency, for LRU and LFU eviction.

/// The counter of a new key, so that it is not the first to be evicted (`LFU_INIT_VAL`).
const INITIAL: u8 = 5;
/// The LRU clock: whole seconds in 24 bits, which wrap around after 194 days.
const CLOCK_MAX: i64 = (1 << 24) - 1;

/// The growth and decay of the LFU counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lfu {
    /// `lfu-log-factor`: how much rarer each further increment is.
    pub log_factor: u32,
    /// `lfu-decay-time`: minutes without use after which the counter falls by one; 0 for never.
    pub decay_minutes: u32,
}

impl Default for Lfu {
    fn default() -> Lfu {
        Lfu { log_factor: 10, decay_minutes: 1 }
    }
}

/// Marks a missing time; no real time is this early.
const NOT_YET: i64 = i64::MIN >> FREQUENCY_BITS;
/// Number of bits below the time.
const FREQUENCY_BITS: u32 = 8;

/// The random input that decides whether an access increments the counter.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Growth and decay of the counter.
    pub lfu: Lfu,
    /// 64 random bits.
    pub bits: u64,
}

/// The use of one key, packed in one word because every key has one.
///
/// The upper bits are milliseconds of the wall clock, or `NOT_YET` between a load and the first
/// use, which counts as used just now. The lower bits are a logarithmic counter: 255 means about a
/// million accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage(i64);

impl Default for Usage {
    fn default() -> Usage {
        Usage::of(NOT_YET, INITIAL)
    }
}

impl Usage {
    fn of(last_ms: i64, counter: u8) -> Usage {
        Usage(last_ms << FREQUENCY_BITS | i64::from(counter))
    }

    fn counter(self) -> u8 {
        (self.0 & i64::from(u8::MAX)) as u8
    }

    /// Returns the usage of a key created now.
    pub fn new(now_ms: i64) -> Usage {
        Usage::of(now_ms, INITIAL)
    }

    /// Returns the usage of a key whose LFU counter is `frequency` now.
    pub fn counted(now_ms: i64, frequency: u8) -> Usage {
        Usage::of(now_ms, frequency)
    }

    /// Returns the usage of a key that has been idle for `secs` seconds, as far as the server's
    /// 24-bit clock can represent it: times before its origin wrap around, and only the low 24 bits
    /// are kept.
    pub fn idle_for(now_ms: i64, secs: i64) -> Usage {
        let clock = (now_ms / 1000) & CLOCK_MAX;
        // The product in milliseconds may overflow and wraps.
        let used = clock - secs.wrapping_mul(1000) / 1000;
        let used = if used < 0 { used + CLOCK_MAX } else { used } & CLOCK_MAX;
        let secs = if clock >= used { clock - used } else { clock + CLOCK_MAX - used };
        Usage::of(now_ms - secs * 1000, INITIAL)
    }

    /// Records an access. With a draw, increments the counter with the probability below.
    ///
    /// Source: the probability is 1 / ((counter - 5) * `lfu-log-factor` + 1), as redis.conf
    /// describes it.
    pub fn note(&mut self, now_ms: i64, draw: Option<Draw>) {
        let mut counter = self.counter();
        if let Some(Draw { lfu, bits }) = draw {
            counter = self.frequency(now_ms, lfu);
            let above = u64::from(counter.saturating_sub(INITIAL));
            let steps = above.saturating_mul(lfu.log_factor.into()) + 1;
            if bits.is_multiple_of(steps) {
                counter = counter.saturating_add(1);
            }
        }
        *self = Usage::of(now_ms, counter);
    }

    fn last_ms(&self) -> Option<i64> {
        let last_ms = self.0 >> FREQUENCY_BITS;
        (last_ms != NOT_YET).then_some(last_ms)
    }

    /// Returns the milliseconds since the last use. 0 before the first use after a load.
    pub fn idle_ms(&self, now_ms: i64) -> i64 {
        self.last_ms().map_or(0, |last_ms| now_ms.saturating_sub(last_ms).max(0))
    }

    /// Returns the counter minus its decay since the last use. The decay counts minute boundaries
    /// of the clock; the first one may come right after the use.
    pub fn frequency(&self, now_ms: i64, lfu: Lfu) -> u8 {
        let minute = |ms: i64| ms.div_euclid(60_000);
        let minutes = self.last_ms().map_or(0, |last_ms| (minute(now_ms) - minute(last_ms)).max(0));
        let steps = minutes.checked_div(lfu.decay_minutes.into()).unwrap_or(0);
        self.counter().saturating_sub(u8::try_from(steps).unwrap_or(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_grows_ever_more_slowly_and_falls_with_idle_minutes() {
        let lfu = Lfu::default();
        let mut usage = Usage::default();
        let note = |usage: &mut Usage, lfu, bits| usage.note(0, Some(Draw { lfu, bits }));
        note(&mut usage, lfu, 1);
        // The first increment is certain, the next has one chance in eleven.
        assert_eq!(usage.frequency(0, lfu), 6);
        note(&mut usage, lfu, 12);
        assert_eq!(usage.frequency(0, lfu), 6);
        note(&mut usage, lfu, 22);
        assert_eq!(usage.frequency(0, lfu), 7);
        assert_eq!(usage.frequency(3 * 60_000, lfu), 4);
        assert_eq!(usage.frequency(i64::MAX, lfu), 0);
        assert_eq!(usage.frequency(i64::MAX, Lfu { decay_minutes: 0, ..lfu }), 7);
        // With a factor of 0 every use counts.
        note(&mut usage, Lfu { log_factor: 0, ..lfu }, 1);
        assert_eq!(usage.frequency(0, lfu), 8);
    }

    #[test]
    fn an_idle_time_that_the_clock_cannot_hold_becomes_half_of_its_range() {
        let now_ms = 1_700_000_000_000;
        assert_eq!(Usage::idle_for(now_ms, 100).idle_ms(now_ms), 100_000);
        let clock = 1_700_000_000 & CLOCK_MAX;
        assert_eq!(Usage::idle_for(now_ms, clock).idle_ms(now_ms), clock * 1000);
        // The clock wraps around before its origin.
        let idle = |secs| Usage::idle_for(now_ms, secs).idle_ms(now_ms) / 1000;
        assert_eq!([idle(clock + 1), idle(CLOCK_MAX - 1), idle(CLOCK_MAX)], [clock + 1, CLOCK_MAX - 1, 0]);
        assert_eq!([idle(CLOCK_MAX + 1), idle(99_999_999), idle(1 << 62)], [1, 16_113_919, 0]);
    }
}
