//! One seed, many named streams of random numbers: a new draw in one stream does not change the
//! others.

use std::time::Duration;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use sha2::{Digest, Sha256};

/// The seed of a run, from which every stream is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entropy {
    seed: u64,
}

impl Entropy {
    /// Returns the streams of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the seed given to [`Entropy::new`].
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the stream of this name from its beginning: ChaCha8 keyed with SHA-256(seed ||
    /// name). Two calls return the same numbers.
    pub fn stream(&self, name: &str) -> Stream {
        let key = Sha256::new().chain_update(self.seed.to_le_bytes()).chain_update(name).finalize();
        Stream(ChaCha8Rng::from_seed(key.into()))
    }
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns the generator itself.
    pub fn into_inner(self) -> ChaCha8Rng {
        self.0
    }

    /// Returns a number below `bound`, by Lemire's multiplication; its bias is below 2^-64 times
    /// `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a duration of whole nanoseconds from `min` to `max`, both included; `min` if they
    /// are in the wrong order.
    pub fn between(&mut self, min: Duration, max: Duration) -> Duration {
        let span = u64::try_from(max.saturating_sub(min).as_nanos()).unwrap_or(u64::MAX - 1);
        min + Duration::from_nanos(self.below(span.saturating_add(1)))
    }

    /// Returns true with a probability of `per_million` in a million.
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(per_million)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_and_on_nothing_else() {
        let draw = |seed, name| Entropy::new(seed).stream(name).next_u64();
        assert_eq!(draw(1, "network"), draw(1, "network"));
        assert_ne!(draw(1, "network"), draw(2, "network"));
        assert_ne!(draw(1, "network"), draw(1, "faults"));
    }

    #[test]
    fn ranges_hold_their_bounds() {
        let mut stream = Entropy::new(7).stream("ranges");
        let (min, max) = (Duration::from_nanos(5), Duration::from_nanos(7));
        let mut seen = [false; 3];
        for _ in 0..200 {
            let drawn = stream.between(min, max);
            assert!((min..=max).contains(&drawn), "{drawn:?}");
            seen[drawn.as_nanos() as usize - 5] = true;
            assert!((0.0..1.0).contains(&stream.unit()));
        }
        assert_eq!(seen, [true; 3], "both ends are included");
        assert_eq!(stream.between(max, min), max, "an empty range is its first end");
        // Each of the numbers below a million is drawn several times.
        assert!(
            (0..10_000_000).all(|_| !stream.chance(0)) && (0..10_000_000).all(|_| stream.chance(1_000_000))
        );
        assert!(stream.between(Duration::ZERO, Duration::MAX) > Duration::ZERO, "no overflow");
    }
}
