//! Computes the estimate from the registers: Ertl's improved estimator.
//!
//! Source: Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
//! arXiv:1702.01284, algorithm 6.

use super::registers::{Histogram, REGISTERS};

/// Number of hash bits that decide the value of a register.
const Q: usize = 50;
/// 1 / (2 ln 2)
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Returns the estimate for registers with this histogram.
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
    // Only registers that no hash produces give infinity. The result is then an x86-64 machine's
    // conversion of it.
    if estimate.is_finite() { estimate.round() as u64 } else { 1 << 63 }
}

/// Contribution of the registers that are 0.
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

/// Contribution of the full registers. The argument is between 0 and 1.
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
