//! The random choices of the generator, all from one seeded PRNG.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// A stream of choices that is equal on every machine.
#[derive(Clone)]
pub(crate) struct Prng(ChaCha8Rng);

impl Prng {
    /// The stream of one episode of a seed.
    pub(crate) fn new(seed: u64, episode: u64) -> Prng {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(episode);
        Prng(rng)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`. The bias of the remainder is harmless here.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    /// A number from `low` to `high`, both inclusive.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.wrapping_sub(low) as u64;
        let drawn = if span == u64::MAX { self.bits() } else { self.bits() % (span + 1) };
        low.wrapping_add(drawn as i64)
    }

    /// Returns true in `chance` of 100 cases.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A count: mostly small, now and then large.
    pub(crate) fn few(&mut self) -> usize {
        match self.below(20) {
            0..=9 => 1,
            10..=14 => 2,
            15..=17 => 3 + self.below(3),
            18 => 6 + self.below(6),
            _ => 12 + self.below(30),
        }
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
