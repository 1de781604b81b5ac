//! How much went on lately, for the `instantaneous` fields of INFO.

use std::time::Duration;

use crate::time::Monotonic;

/// How often a server takes a sample.
const SAMPLE: Duration = Duration::from_millis(100);
/// How many are averaged.
const SAMPLES: usize = 16;

/// The counters: commands, and bytes in and out, of clients and of replication.
pub type Counts = [u64; 5];

/// The counts of the last 1.6 seconds.
///
/// A server samples its counters ten times a second. Here they are noted as they change, each under
/// the tenth of a second that it falls into, so that a node that does nothing has nothing to do for
/// this either.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// The counters when they were last noted.
    noted: Counts,
    /// By the number of the tenth of a second, modulo their count: that number, and the counts.
    samples: [(i64, Counts); SAMPLES],
}

impl Rates {
    /// Notes the counters, which never go back.
    pub fn note(&mut self, now: Monotonic, counters: Counts) {
        if counters == self.noted {
            return;
        }
        let number = number(now);
        let (of, counts) = &mut self.samples[number.rem_euclid(SAMPLES as i64) as usize];
        if *of != number {
            (*of, *counts) = (number, Counts::default());
        }
        for ((count, counter), noted) in counts.iter_mut().zip(counters).zip(self.noted) {
            *count += counter.saturating_sub(noted);
        }
        self.noted = counters;
    }

    /// What there was of each per second.
    ///
    /// ```
    /// use lockstorm_sim::{node::rates::Rates, time::Monotonic};
    /// let mut rates = Rates::default();
    /// rates.note(Monotonic::from_millis(100), [16, 1600, 0, 0, 0]);
    /// assert_eq!(rates.per_second(Monotonic::from_millis(200))[..2], [10.0, 1000.0]);
    /// assert_eq!(rates.per_second(Monotonic::from_millis(5000))[..2], [0.0, 0.0]);
    /// ```
    pub fn per_second(&self, now: Monotonic) -> [f64; 5] {
        let now = number(now);
        let recent = self.samples.iter().filter(|(number, _)| (now - SAMPLES as i64..=now).contains(number));
        let mut all = Counts::default();
        for (_, counts) in recent {
            all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        all.map(|sum| sum as f64 / (SAMPLE * SAMPLES as u32).as_secs_f64())
    }
}

/// The number of the tenth of a second, counted from 1.
fn number(now: Monotonic) -> i64 {
    1 + now.as_millis() / SAMPLE.as_millis() as i64
}
