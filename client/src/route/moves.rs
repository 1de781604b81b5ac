//! How often requests have taken a new connection, for the requests that must follow.
//!
//! A count and a bell: a watch channel of tokio's would draw from its own PRNG which of several to
//! wake first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The count, and the tasks to notify when it changes.
#[derive(Default)]
pub(crate) struct Moves {
    count: AtomicU64,
    moved: Notify,
}

impl Moves {
    /// Requests take a new connection.
    pub(super) fn moved(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.moved.notify_waiters();
    }

    pub(super) fn position(self: &Arc<Self>) -> Position {
        Position { count: self.count.load(Ordering::Acquire), moves: self.clone() }
    }
}

/// Where requests went at some moment.
pub(crate) struct Position {
    moves: Arc<Moves>,
    count: u64,
}

impl Position {
    /// Whether requests go elsewhere.
    pub(super) fn is_left(&self) -> bool {
        self.moves.count.load(Ordering::Acquire) != self.count
    }

    /// Completes when requests go elsewhere.
    pub(crate) async fn left(&self) {
        // In line before the look, so that a move in between is not missed.
        let mut moved = std::pin::pin!(self.moves.moved.notified());
        moved.as_mut().enable();
        if !self.is_left() {
            moved.await;
        }
    }
}
