//! Durations of commands: a histogram per command (LATENCY HISTOGRAM, INFO latencystats), and the
//! spikes that `latency-monitor-threshold` records (LATENCY LATEST, HISTORY, GRAPH, DOCTOR).

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// A histogram of durations in nanoseconds. A slot is at most 1/128 of its values wide, as in
/// `redis-server`.
///
/// It is not a library's, because clients see the bounds of the slots and the rounding of
/// percentiles.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// The count of each slot, up to the longest duration seen.
    counts: Vec<u64>,
    total: u64,
}

/// The number of bits of a duration that distinguish slots.
const PRECISION: u32 = 7;
/// Longer durations are counted as this one: a second.
const LONGEST_NS: u64 = 1_000_000_000;
/// The end of the last slot.
const END_NS: u64 = (1 << 30) - 1;
/// The first bound of LATENCY HISTOGRAM; each further bound is twice the one before.
const FIRST_BOUND_NS: u64 = 1024;

fn slot(ns: u64) -> usize {
    let shift = (u64::BITS - PRECISION - 1).saturating_sub((ns | 0xff).leading_zeros());
    ((u64::from(shift) << PRECISION) + (ns >> shift)) as usize
}

/// Returns the shortest and the longest duration of a slot.
fn bounds(slot: usize) -> (u64, u64) {
    let shift = (slot >> PRECISION).saturating_sub(1);
    let least = ((slot - (shift << PRECISION)) as u64) << shift;
    (least, least + (1 << shift) - 1)
}

impl Histogram {
    /// Counts a duration.
    pub fn add(&mut self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).clamp(1, LONGEST_NS);
        let slot = slot(ns);
        if slot >= self.counts.len() {
            self.counts.resize(slot + 1, 0);
        }
        self.counts[slot] += 1;
        self.total += 1;
    }

    /// Returns the number of durations counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns a percentile in nanoseconds: the upper end of its slot, or the lower end for 0
    /// percent.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = (percent / 100.0 * self.total as f64 + 0.5) as u64;
        let mut seen = 0;
        let slot = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted.max(1)
        });
        let (least, greatest) = bounds(slot.unwrap_or_default());
        if percent == 0.0 { least } else { greatest }
    }

    /// Returns pairs of a bound in nanoseconds and the number of durations up to it. Bounds that
    /// add no duration are left out.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut out: Vec<(u64, u64)> = Vec::new();
        let (mut bound, mut seen) = (FIRST_BOUND_NS, 0);
        for (slot, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            while bounds(slot).0 > bound {
                bound *= 2;
            }
            seen += count;
            let greatest = bounds(self::slot(bound)).1.min(END_NS);
            match out.last_mut() {
                Some((last, count)) if *last == greatest => *count = seen,
                _ => out.push((greatest, seen)),
            }
        }
        out
    }
}

/// A spike: the wall-clock second it ended in, and its duration in milliseconds.
pub type Spike = (i64, u64);

/// The spikes of one kind of event.
#[derive(Debug, Clone, Default)]
pub struct Spikes {
    /// The longest spike of each second that had any, the oldest first; never empty.
    samples: VecDeque<Spike>,
    worst_ms: u64,
}

impl Spikes {
    /// The number of spikes kept per event.
    const KEPT: usize = 160;

    /// The spikes, the oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Spike> {
        self.samples.iter().copied()
    }

    /// Returns the latest spike; [`Spikes::worst_ms`] is the longest.
    pub fn latest(&self) -> Spike {
        self.samples.back().copied().unwrap_or_default()
    }

    /// Returns the longest spike ever in milliseconds, even if it is no longer kept.
    pub fn worst_ms(&self) -> u64 {
        self.worst_ms
    }

    fn note(&mut self, at: i64, took_ms: u64) {
        self.worst_ms = self.worst_ms.max(took_ms);
        match self.samples.back_mut() {
            Some((second, longest)) if *second == at => *longest = took_ms.max(*longest),
            _ => {
                if self.samples.len() == Spikes::KEPT {
                    self.samples.pop_front();
                }
                self.samples.push_back((at, took_ms));
            }
        }
    }
}

/// The spikes of each event.
#[derive(Debug, Clone, Default)]
pub struct Monitor {
    events: BTreeMap<&'static str, Spikes>,
}

impl Monitor {
    /// Records a spike in the wall-clock second `at`, if `took` is at least `threshold_ms`; a
    /// threshold of 0 records none.
    pub fn note(&mut self, event: &'static str, at: i64, took: Duration, threshold_ms: u64) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if threshold_ms > 0 && took_ms >= threshold_ms {
            self.events.entry(event).or_default().note(at, took_ms);
        }
    }

    /// Returns the spikes of an event, with its static name.
    pub fn of(&self, event: &[u8]) -> Option<(&'static str, &Spikes)> {
        let event = self.events.iter().find(|(name, _)| name.as_bytes() == event);
        event.map(|(name, spikes)| (*name, spikes))
    }

    /// Returns each event that had spikes, with its spikes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &Spikes)> {
        self.events.iter().map(|(name, spikes)| (*name, spikes))
    }

    /// Removes the events for which `forget` returns true; returns their number.
    pub fn reset(&mut self, mut forget: impl FnMut(&str) -> bool) -> usize {
        let before = self.events.len();
        self.events.retain(|name, _| !forget(name));
        before - self.events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(durations_us: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        durations_us.iter().for_each(|us| histogram.add(Duration::from_micros(*us)));
        histogram
    }

    #[test]
    fn slots_are_as_wide_as_a_server_has_them() {
        for ns in (0..5000).chain([8191, 8192, 67_108_863, 67_108_864, LONGEST_NS]) {
            let (least, greatest) = bounds(slot(ns));
            assert!((least..=greatest).contains(&ns), "{ns}: {least} to {greatest}");
            assert!(greatest - least <= ns / 128, "{ns}: {least} to {greatest}");
            assert_eq!((slot(least), slot(greatest)), (slot(ns), slot(ns)));
        }
    }

    /// Each row was measured on `redis-server`: durations in microseconds, then the bounds in
    /// microseconds with their counts.
    #[test]
    fn bounds_double_and_those_that_add_nothing_are_left_out() {
        type Row = (&'static [u64], &'static [(u64, u64)]);
        let rows: [Row; 5] = [
            (&[], &[]),
            (&[0, 1], &[(1, 2)]),
            (&[8, 9, 5], &[(8, 2), (16, 3)]),
            (&[23_867, 50_093], &[(33_816, 1), (67_633, 2)]),
            (&[1_200_000], &[(1_073_741, 1)]),
        ];
        for (durations, expected) in rows {
            let counted = histogram(durations).cumulative();
            let counted: Vec<_> = counted.iter().map(|(ns, count)| (ns / 1000, *count)).collect();
            assert_eq!(counted, expected, "{durations:?}");
        }
    }

    /// Each row was measured on `redis-server`: durations in microseconds, a percentage, and the
    /// percentile in nanoseconds.
    #[test]
    fn percentiles_are_the_upper_ends_of_slots() {
        let rows: [(&[u64], f64, u64); 6] = [
            (&[0], 50.0, 1),
            (&[9], 50.0, 9_023),
            (&[23_867, 50_093], 50.0, 23_986_175),
            (&[23_867, 50_093], 99.0, 50_331_647),
            (&[41, 109], 0.0, 40_960),
            (&[41, 51, 109, 130], 50.5, 51_199),
        ];
        for (durations, percent, expected) in rows {
            assert_eq!(histogram(durations).percentile_ns(percent), expected, "{durations:?} {percent}");
        }
    }

    #[test]
    fn one_second_has_one_spike_and_old_spikes_go() {
        let mut monitor = Monitor::default();
        let mut note = |at, ms| monitor.note("command", at, Duration::from_millis(ms), 10);
        note(1, 9);
        note(1, 300);
        note(1, 20);
        (2..=200).for_each(|at| note(at, 10));
        let (_, spikes) = monitor.of(b"command").expect("there are spikes");
        assert_eq!((spikes.iter().len(), spikes.latest(), spikes.worst_ms()), (160, (200, 10), 300));
        assert_eq!(monitor.reset(|name| name == "fast-command"), 0);
        assert_eq!(monitor.reset(|name| name == "command"), 1);
        assert!(monitor.of(b"command").is_none());
    }
}
