//! Counts the times that requests moved to a new connection, for tasks that must follow.
//!
//! It is a counter with a `Notify`. A watch channel of tokio would use tokio's own PRNG to choose
//! the order in which it wakes tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The count, and the notification of its change.
#[derive(Default)]
pub(crate) struct Moves {
    count: AtomicU64,
    moved: Notify,
}

impl Moves {
    /// Records that requests use a new connection.
    pub(super) fn moved(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.moved.notify_waiters();
    }

    pub(super) fn position(self: &Arc<Self>) -> Position {
        Position { count: self.count.load(Ordering::Acquire), moves: self.clone() }
    }
}

/// A value of the count, to detect later changes.
pub(crate) struct Position {
    moves: Arc<Moves>,
    count: u64,
}

impl Position {
    /// Returns true if requests have moved since.
    pub(super) fn is_left(&self) -> bool {
        self.moves.count.load(Ordering::Acquire) != self.count
    }

    /// Completes when requests have moved.
    pub(crate) async fn left(&self) {
        // Register for the notification before checking, or a move in between is lost.
        let mut moved = std::pin::pin!(self.moves.moved.notified());
        moved.as_mut().enable();
        if !self.is_left() {
            moved.await;
        }
    }
}
