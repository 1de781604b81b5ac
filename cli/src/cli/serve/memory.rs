//! Memory that the server does not need any more, for the operating system.
//!
//! The allocator keeps what is freed for a while, and gives it back when something is freed later
//! than that. A server that has become quiet frees nothing: it would keep for good what its last
//! clients have left unread.

use std::{hint::black_box, time::Duration};

/// How often the allocator is given an occasion. What is freed waits for a second anyway.
const PERIOD: Duration = Duration::from_secs(1);

/// At each of them it looks at a quarter of the places in which it keeps memory.
const LOOKS: usize = 4;

/// So large a piece is given back to the operating system by itself; no byte of it is touched.
const PIECE: usize = 8 << 20;

/// Frees something once in a while, for as long as it is polled.
pub(super) async fn give_back() {
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        for _ in 0..LOOKS {
            drop(black_box(Vec::<u8>::with_capacity(PIECE)));
        }
    }
}
