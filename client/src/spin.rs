//! The backoff of waiters that no message wakes.

use std::time::Duration;

use crate::env::{Env, draw};

/// The backoff of a waiter of a [spin lock](crate::Client::spin_lock): the delays between its
/// requests.
///
/// ```
/// use std::time::Duration;
/// use lockstorm_client::SpinBackoff;
/// let patient = SpinBackoff::exponential(Duration::from_millis(10), 2, Duration::from_secs(1));
/// let steady = SpinBackoff::constant(Duration::from_millis(64));
/// assert_ne!(patient, steady);
/// assert_eq!(SpinBackoff::default(), SpinBackoff::exponential(Duration::from_millis(1), 2, Duration::from_millis(128)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinBackoff {
    first: Duration,
    factor: u32,
    most: Duration,
}

impl SpinBackoff {
    /// Every waiter pauses at least this long.
    const LEAST: Duration = Duration::from_millis(1);

    /// Sleeps for `first`, then each time for `factor` times as long as before, up to `most`. Each
    /// delay except the first, and except those at `most`, gets a random number of milliseconds
    /// added, less than the number of refusals so far. So waiters that began together do not keep
    /// asking together. Delays are at least 1 ms.
    pub fn exponential(first: Duration, factor: u32, most: Duration) -> Self {
        Self { first, factor, most }
    }

    /// Sleeps for `delay` each time, at least 1 ms.
    pub fn constant(delay: Duration) -> Self {
        Self { first: delay, factor: 1, most: delay }
    }
}

impl Default for SpinBackoff {
    /// From 1 ms to 128 ms, doubled each time, as in Redisson.
    fn default() -> Self {
        Self::exponential(Duration::from_millis(1), 2, Duration::from_millis(128))
    }
}

/// The state of one waiter's backoff.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    refusals: u64,
    last: Duration,
}

impl Spins {
    /// Returns the delay after one more refusal.
    pub(crate) fn next(&mut self, backoff: SpinBackoff, env: &dyn Env) -> Duration {
        let SpinBackoff { first, factor, most } = backoff;
        let next = match self.refusals {
            0 => first,
            // At the limit no jitter is added.
            _ if self.last >= most => most,
            refusals => {
                let jitter = Duration::from_millis(draw(env, refusals - 1));
                self.last.saturating_mul(factor).saturating_add(jitter)
            }
        };
        self.refusals += 1;
        self.last = next.min(most).max(SpinBackoff::LEAST);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnv;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Each delay is `factor` times the one before plus less than the number of refusals in ms. The
    /// limit stays once it is reached, and no delay is zero.
    #[tokio::test]
    async fn delays_grow_to_the_limit() {
        let env = TokioEnv::current().unwrap();
        for (backoff, first, factor, most) in [
            (SpinBackoff::default(), 1, 2, 128),
            (SpinBackoff::exponential(ms(10), 3, ms(1000)), 10, 3, 1000),
            (SpinBackoff::constant(ms(64)), 64, 1, 64),
            (SpinBackoff::constant(Duration::ZERO), 1, 1, 1),
            (SpinBackoff::exponential(ms(5), 0, ms(20)), 5, 0, 20),
            (SpinBackoff::exponential(ms(50), 2, ms(20)), 20, 2, 20),
        ] {
            let mut spins = Spins::default();
            let mut last = spins.next(backoff, &env);
            assert_eq!(last, ms(first), "{backoff:?}");
            for refusals in 1..40 {
                let next = spins.next(backoff, &env);
                let least = (last * factor).min(ms(most)).max(ms(1));
                let below = (last * factor + ms(refusals)).min(ms(most + 1)).max(ms(2));
                assert!((least..below).contains(&next), "{backoff:?}: {next:?} after {last:?}");
                last = next;
            }
            assert!(factor == 0 || last == ms(most), "{backoff:?}: {last:?}");
        }
    }
}
