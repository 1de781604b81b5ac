//! When a key was last used and how often: what LRU and LFU eviction go by.

/// The counter of a new key, so that it is not the first to be evicted (`LFU_INIT_VAL`).
const INITIAL: u8 = 5;
/// `lfu-log-factor`: how much rarer each further increment is.
const LOG_FACTOR: u64 = 10;
/// `lfu-decay-time`: after so many minutes without use the counter falls by one.
const DECAY_MINUTES: i64 = 1;

/// The use of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Milliseconds of the wall clock; `None` until the first use after a load, which counts as just now.
    last_ms: Option<i64>,
    /// A logarithmic counter: 255 stands for about a million uses.
    frequency: u8,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage { last_ms: None, frequency: INITIAL }
    }
}

impl Usage {
    /// Notes a use. Given 64 random bits, the counter goes up with a chance that they decide.
    ///
    /// Source: the chance is 1 / ((counter - 5) * `lfu-log-factor` + 1), as redis.conf describes it.
    pub fn note(&mut self, now_ms: i64, draw: Option<u64>) {
        if let Some(draw) = draw {
            self.frequency = self.frequency(now_ms);
            let steps = u64::from(self.frequency.saturating_sub(INITIAL)) * LOG_FACTOR + 1;
            if draw.is_multiple_of(steps) {
                self.frequency = self.frequency.saturating_add(1);
            }
        }
        self.last_ms = Some(now_ms);
    }

    /// Milliseconds since the last use.
    pub fn idle_ms(&self, now_ms: i64) -> i64 {
        self.last_ms.map_or(0, |last_ms| now_ms.saturating_sub(last_ms).max(0))
    }

    /// The counter, less what the time without use has taken off it.
    pub fn frequency(&self, now_ms: i64) -> u8 {
        let minutes = self.idle_ms(now_ms) / 60_000 / DECAY_MINUTES;
        self.frequency.saturating_sub(u8::try_from(minutes).unwrap_or(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_grows_ever_more_slowly_and_falls_with_idle_minutes() {
        let mut usage = Usage::default();
        usage.note(0, Some(1));
        // The first increment is certain, the next has one chance in eleven.
        assert_eq!(usage.frequency(0), 6);
        usage.note(0, Some(12));
        assert_eq!(usage.frequency(0), 6);
        usage.note(0, Some(22));
        assert_eq!(usage.frequency(0), 7);
        assert_eq!(usage.frequency(3 * 60_000), 4);
        assert_eq!(usage.frequency(i64::MAX), 0);
    }
}
