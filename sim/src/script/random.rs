//! The PRNG of scripts: the 48-bit linear congruential generator of POSIX `lrand48`, so that
//! scripts draw the same numbers on every machine. As in Redis 7, the process owns the state: a
//! script continues the sequence of the one before.

use std::cell::Cell;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// The state before any seed. POSIX does not define it; this is the value of the BSD generator.
const UNSEEDED: u64 = 0x1234_ABCD_330E;

/// State of the generator.
#[derive(Debug)]
pub(super) struct Random(Cell<u64>);

impl Default for Random {
    fn default() -> Random {
        Random(Cell::new(UNSEEDED))
    }
}

impl Random {
    /// `srand48`.
    pub(super) fn seed(&self, seed: i32) {
        self.0.set(u64::from(seed as u32) << 16 | 0x330E);
    }

    /// `lrand48`: returns 31 bits.
    pub(super) fn next(&self) -> i32 {
        let next = self.0.get().wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        self.0.set(next);
        (next >> 17) as i32
    }
}
