//! What can be set of the algorithm.

use std::time::Duration;

/// The settings of one RedLock.
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
            drift_ppm: 10_000,
            retry_delay: Duration::from_millis(200),
            attempts: None,
        }
    }
}

impl Options {
    /// The part of a lease that is given away to clocks that run at different rates.
    pub(super) fn drift(&self, lease: Duration) -> Duration {
        lease.mul_f64(f64::from(self.drift_ppm) / 1e6) + Duration::from_millis(2)
    }
}
