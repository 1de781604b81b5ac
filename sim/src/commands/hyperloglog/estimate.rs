//! From registers to a number: Ertl's improved estimator.
//!
//! Source: Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
//! arXiv:1702.01284, algorithm 6.

use super::registers::{Histogram, REGISTERS};

/// How many bits of the hash decide the value of a register.
const Q: usize = 50;
/// 1 / (2 ln 2)
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The estimate for registers whose values are so distributed.
pub(super) fn estimate(histogram: &Histogram) -> u64 {
    let m = REGISTERS as f64;
    let share = |count: u32| f64::from(count) / m;
    let largest = f64::from(histogram[Q + 1]);
    let mut z = m * tau((m - largest) / m);
    for count in histogram[1..=Q].iter().rev() {
        z = (z + f64::from(*count)) * 0.5;
    }
    z += m * sigma(share(histogram[0]));
    let estimate = ALPHA * m * m / z;
    // Only registers that no hash makes come to this; it is what an x86-64 machine makes of
    // infinity then.
    if estimate.is_finite() { estimate.round() as u64 } else { 1 << 63 }
}

/// The contribution of registers that are 0.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// The contribution of registers that are full. The argument lies between 0 and 1.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}
