//! The parameters of the algorithm.

use std::time::Duration;

use crate::wire::{DRIFT_PPM, drift_margin_of};

#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) node_timeout: Duration,
    pub(super) drift_ppm: u32,
    pub(super) retry_delay: Duration,
    pub(super) attempts: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            node_timeout: Duration::from_millis(50),
            drift_ppm: DRIFT_PPM,
            retry_delay: Duration::from_millis(200),
            attempts: None,
        }
    }
}

impl Options {
    /// Returns the part of a lease that is given up to allow for clocks of different rates.
    pub(super) fn drift(&self, lease: Duration) -> Duration {
        drift_margin_of(lease, self.drift_ppm)
    }
}
