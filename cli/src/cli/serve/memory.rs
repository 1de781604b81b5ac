//! Returns freed memory to the operating system.
//!
//! The allocator keeps freed memory for a while, and returns it during a later call to free. An
//! idle server frees nothing, so it would keep the buffers of its last clients forever.

use std::{hint::black_box, time::Duration};

/// The interval between two calls to free. Freed memory is kept for a second anyway.
const PERIOD: Duration = Duration::from_secs(1);

/// The number of calls per interval. At each one the allocator checks a quarter of its memory.
const LOOKS: usize = 4;

/// The size of an allocation that goes directly to the operating system. No byte of it is touched.
const PIECE: usize = 8 << 20;

/// Allocates and frees in every interval, for as long as it is polled.
pub(super) async fn give_back() {
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        for _ in 0..LOOKS {
            drop(black_box(Vec::<u8>::with_capacity(PIECE)));
        }
    }
}
