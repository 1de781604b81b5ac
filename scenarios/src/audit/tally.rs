//! Counts of durations in buckets, with quantiles, in little memory.

use std::collections::BTreeMap;

/// The number of buckets for each doubling, so a quantile is exact to 3 %.
const PER_DOUBLING: u64 = 32;

/// Durations in microseconds, counted in buckets.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations {
    buckets: BTreeMap<u16, u64>,
    count: u64,
    longest_us: u64,
}

impl Durations {
    /// Adds a duration; a negative one counts as zero, because clocks step.
    pub(super) fn add(&mut self, us: i64) {
        let us = u64::try_from(us).unwrap_or(0);
        *self.buckets.entry(bucket(us)).or_default() += 1;
        self.count += 1;
        self.longest_us = self.longest_us.max(us);
    }

    /// Adds all durations of another tally.
    pub(super) fn join(&mut self, other: &Durations) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.count += other.count;
        self.longest_us = self.longest_us.max(other.longest_us);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn longest_us(&self) -> Option<u64> {
        (self.count > 0).then_some(self.longest_us)
    }

    /// Returns the duration that this percentage of all does not exceed; `None` without durations.
    pub(super) fn percentile_us(&self, percent: u64) -> Option<u64> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut sum = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            sum += **count;
            sum >= rank
        });
        found.map(|(bucket, _)| end(*bucket).min(self.longest_us))
    }
}

/// Returns the number of the bucket: the value itself for small ones, then 32 for each doubling.
fn bucket(us: u64) -> u16 {
    let doublings = u64::from(us.max(1).ilog2()).saturating_sub(5);
    let step = us >> doublings;
    u16::try_from(doublings * PER_DOUBLING + step).unwrap_or(u16::MAX)
}

/// Returns the greatest value in a bucket.
fn end(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < 2 * PER_DOUBLING {
        return bucket;
    }
    let doublings = bucket / PER_DOUBLING - 1;
    let step = u128::from(bucket - doublings * PER_DOUBLING + 1);
    u64::try_from((step << doublings) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_at_most_3_percent_above_its_values() {
        for us in (0..2_000).chain([4_095, 4_096, 1_000_000, u64::from(u32::MAX), u64::MAX]) {
            let end = end(bucket(us));
            assert!(end >= us && end - us <= us / 32, "{us} is in a bucket that ends at {end}");
        }
    }

    #[test]
    fn percentiles() {
        let mut durations = Durations::default();
        assert_eq!(durations.percentile_us(50), None);
        (1..=40).for_each(|us| durations.add(us));
        durations.add(-5);
        assert_eq!(durations.count(), 41);
        assert_eq!(durations.percentile_us(50), Some(20));
        assert_eq!(durations.percentile_us(100), Some(40));
        assert_eq!(durations.percentile_us(0), Some(0));
        assert_eq!(durations.longest_us(), Some(40));
    }
}
