//! Recent rates of commands and bytes, for the `instantaneous` fields of INFO.

use std::time::Duration;

use crate::time::Monotonic;

/// The sampling interval of a server.
const SAMPLE: Duration = Duration::from_millis(100);
/// The number of samples averaged.
const SAMPLES: usize = 16;

/// The counters: commands, bytes in and out of clients, and bytes in and out of replication.
pub type Counts = [u64; 5];

/// The counts of the last 1.6 seconds.
///
/// A server samples its counters ten times a second. Here each change is added to the tenth of a
/// second in which it happens, so that an idle node has no periodic work for this.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// The counters at the last call of `note`.
    noted: Counts,
    /// One entry per tenth of a second, at its number modulo the array's length: that number, and
    /// the counts.
    samples: [(i64, Counts); SAMPLES],
}

impl Rates {
    /// Records the counters, which never decrease.
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

    /// Returns the rate of each counter per second.
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

/// Returns the number of a tenth of a second, counted from 1.
fn number(now: Monotonic) -> i64 {
    1 + now.as_millis() / SAMPLE.as_millis() as i64
}
