//! The clocks of a host as piecewise linear functions of true time. They convert an instant to a
//! reading and a reading to an instant.

use std::{fmt, time::Duration};

use lockstorm_world::time::{Boottime, Monotonic, True, Wall};
use serde::{Deserialize, Serialize};

use super::id::nanos;

/// One of a host's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockId {
    /// `CLOCK_REALTIME`: NTP or an operator can step it forwards and backwards.
    Wall,
    /// `CLOCK_MONOTONIC`: stops while the host is suspended.
    Monotonic,
    /// `CLOCK_BOOTTIME`: continues while the host is suspended.
    Boottime,
}

impl ClockId {
    /// All clocks, in the order of [`Segment::readings`].
    pub const ALL: [Self; 3] = [Self::Wall, Self::Monotonic, Self::Boottime];
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wall => "wall clock",
            Self::Monotonic => "monotonic clock",
            Self::Boottime => "boottime clock",
        })
    }
}

/// A deadline by one of a client's own clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The clock that decides; the client chooses it, perhaps wrongly.
    pub clock: ClockId,
    /// The reading in nanoseconds.
    pub nanos: i64,
}

impl From<Wall> for Deadline {
    fn from(at: Wall) -> Self {
        Self { clock: ClockId::Wall, nanos: at.as_nanos() }
    }
}

impl From<Monotonic> for Deadline {
    fn from(at: Monotonic) -> Self {
        Self { clock: ClockId::Monotonic, nanos: at.as_nanos() }
    }
}

impl From<Boottime> for Deadline {
    fn from(at: Boottime) -> Self {
        Self { clock: ClockId::Boottime, nanos: at.as_nanos() }
    }
}

/// A linear piece of a host's clocks, valid from `from` until the next piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The true instant at which it begins.
    #[serde(with = "nanos")]
    pub from: True,
    /// Readings in nanoseconds at `from`: wall, monotonic, boottime.
    pub readings: [i64; 3],
    /// The rate of each clock in billionths of true time: 1,000,000,000 is exact, 0 is stopped.
    pub rates: [i64; 3],
}

/// Billionths in one.
const UNIT: i128 = 1_000_000_000;

impl Segment {
    fn at(&self, clock_id: ClockId, at: True) -> i64 {
        let elapsed = i128::from(at.as_nanos()) - i128::from(self.from.as_nanos());
        let reading = i128::from(self.readings[clock_id as usize])
            + (elapsed * i128::from(self.rates[clock_id as usize])).div_euclid(UNIT);
        reading.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// The clocks of one host over the whole run: at least one piece, in the order of true time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Segment>", into = "Vec<Segment>")]
pub struct Clock {
    segments: Vec<Segment>,
}

impl TryFrom<Vec<Segment>> for Clock {
    type Error = &'static str;

    fn try_from(segments: Vec<Segment>) -> Result<Self, Self::Error> {
        if segments.is_empty() {
            return Err("a clock without pieces");
        }
        if !segments.is_sorted_by_key(|segment| segment.from) {
            return Err("a clock whose pieces are not in order");
        }
        Ok(Self { segments })
    }
}

impl From<Clock> for Vec<Segment> {
    fn from(clock: Clock) -> Self {
        clock.segments
    }
}

impl Clock {
    /// Returns clocks that all show true time, with 0 at the start of the run.
    pub fn true_time() -> Self {
        Self { segments: vec![Segment { from: True::ZERO, readings: [0; 3], rates: [UNIT as i64; 3] }] }
    }

    /// Returns the pieces, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn index(&self, at: True) -> usize {
        self.segments.partition_point(|segment| segment.from <= at).saturating_sub(1)
    }

    /// Returns a clock's reading at a true instant, in nanoseconds.
    pub fn reading(&self, clock_id: ClockId, at: True) -> i64 {
        self.segments[self.index(at)].at(clock_id, at)
    }

    /// Returns the first true instant, not before `from`, at which the clock shows the deadline or
    /// more; `None` if it never does.
    pub fn first_true(&self, deadline: Deadline, from: True) -> Option<True> {
        let clock_id = deadline.clock;
        let first = self.index(from);
        for (index, segment) in self.segments.iter().enumerate().skip(first) {
            let start = if index == first { from } else { segment.from };
            let missing = i128::from(deadline.nanos) - i128::from(segment.at(clock_id, start));
            if missing <= 0 {
                return Some(start);
            }
            let rate = i128::from(segment.rates[clock_id as usize]);
            if rate <= 0 {
                continue;
            }
            // Count from the beginning of the piece, so that rounding down at `start` costs
            // nothing.
            let needed = i128::from(deadline.nanos) - i128::from(segment.readings[clock_id as usize]);
            let wait = (needed * UNIT + rate - 1) / rate;
            let Ok(at) = i64::try_from(i128::from(segment.from.as_nanos()) + wait) else { continue };
            let at = True::from_nanos(at);
            if self.segments.get(index + 1).is_none_or(|next| at < next.from) {
                return Some(at);
            }
        }
        None
    }

    /// Returns the instant at which a clock has advanced by `by` since `from`: it shows `by` more
    /// than at `from`, or than at its lowest reading since. `None` if it never does.
    pub fn advances(&self, clock_id: ClockId, from: True, by: Duration) -> Option<True> {
        let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        let mut lowest = i64::MAX;
        for (index, segment) in self.segments.iter().enumerate().skip(self.index(from)) {
            let start = segment.from.max(from);
            let next = self.segments.get(index + 1).map(|next| next.from);
            if next.is_some_and(|next| next <= start) {
                continue;
            }
            // Within a piece a clock never goes backwards, so its start has its lowest reading.
            lowest = lowest.min(segment.at(clock_id, start));
            let deadline = Deadline { clock: clock_id, nanos: lowest.saturating_add(by) };
            let shown = self.first_true(deadline, start);
            if let Some(at) = shown.filter(|at| next.is_none_or(|next| *at < next)) {
                return Some(at);
            }
        }
        None
    }

    /// Returns the instant at which a key with this expiry is gone by this host's wall clock. Redis
    /// drops a key once its clock, in whole milliseconds, is past the expiry, not when it equals
    /// it.
    pub fn expires(&self, until: Wall, from: True) -> Option<True> {
        let next_ms = Wall::from_millis(until.as_millis().saturating_add(1));
        self.first_true(next_ms.into(), from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn clock(pieces: &[(i64, i64, i64)]) -> Clock {
        let segment = |&(from, reading, ppm): &(i64, i64, i64)| Segment {
            from: True::from_secs(from),
            readings: [reading * SECOND; 3],
            rates: [SECOND + ppm * 1_000; 3],
        };
        Clock::try_from(pieces.iter().map(segment).collect::<Vec<_>>()).expect("pieces in order")
    }

    fn first(clock: &Clock, reading: i64, from: i64) -> Option<f64> {
        let deadline = Deadline { clock: ClockId::Wall, nanos: reading * SECOND };
        clock.first_true(deadline, True::from_secs(from)).map(|at| at.as_nanos() as f64 / SECOND as f64)
    }

    #[test]
    fn a_clock_that_is_set_back_advances_from_where_it_is() {
        // Set back by 5 s at 8 s, stepped 100 s ahead at 30 s, stopped from 31 s on.
        let clock = clock(&[(0, 0, 0), (8, 3, 0), (30, 125, 0), (31, 126, -1_000_000)]);
        for (from, by, expected) in [
            (0, 8, Some(13)),
            (0, 7, Some(7)),
            (7, 10, Some(18)),
            (8, 10, Some(18)),
            (25, 10, Some(30)),
            (30, 2, None),
        ] {
            let at = clock.advances(ClockId::Wall, True::from_secs(from), Duration::from_secs(by));
            assert_eq!(at, expected.map(True::from_secs), "{by} s from {from} s on");
        }
    }

    #[test]
    fn a_reading_comes_back_as_the_instant_it_was_shown() {
        // True until 10 s, then stepped 100 s ahead, then stopped from 20 s to 30 s.
        let clock = clock(&[(0, 0, 0), (10, 110, 0), (20, 120, -1_000_000), (30, 120, 0)]);
        for (reading, from, expected) in [
            (5, 0, Some(5.0)),
            (5, 7, Some(7.0)),
            // The step jumps over this reading: it counts as shown from the step on.
            (50, 0, Some(10.0)),
            (115, 0, Some(15.0)),
            (120, 0, Some(20.0)),
            (121, 0, Some(31.0)),
        ] {
            assert_eq!(first(&clock, reading, from), expected, "{reading} from {from}");
        }
    }

    #[test]
    fn a_clock_that_runs_fast_reaches_a_reading_early() {
        // The clock is 2 % fast. It shows ten seconds after 9.803921569 true seconds, rounded up to
        // a nanosecond.
        assert_eq!(first(&clock(&[(0, 0, 20_000)]), 10, 0), Some(9.803_921_569));
        assert_eq!(first(&clock(&[(0, 0, -1_000_000)]), 10, 0), None);
    }

    #[test]
    fn a_key_is_gone_one_millisecond_after_its_expiry() {
        let at = Clock::true_time().expires(Wall::from_millis(1_000), True::ZERO);
        assert_eq!(at, Some(True::ZERO + Duration::from_millis(1_001)));
    }

    #[test]
    fn absurd_pieces_are_refused_or_saturate() {
        assert!(Clock::try_from(Vec::new()).is_err());
        let far = Clock::try_from(vec![Segment {
            from: True::ZERO,
            readings: [i64::MAX; 3],
            rates: [i64::MAX; 3],
        }])
        .expect("one piece");
        assert_eq!(far.reading(ClockId::Wall, True::MAX), i64::MAX);
        assert_eq!(far.expires(Wall::MAX, True::ZERO), Some(True::ZERO));
    }
}
