//! The decision about the nodes that a Redlock has set, shared with the tasks that wait for it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use crate::work::Trouble;

/// The fate of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Freed,
    /// The nodes keep the lock until its lease ends.
    Left,
}

/// The decision about the fate of the nodes. The first one counts.
///
/// A semaphore wakes waiters in the order of their arrival. A `tokio::sync::watch` would draw the
/// order from the thread's own random numbers, and a simulated run would not be reproducible.
pub(super) struct Word {
    /// Has no permits; closing it announces the decision.
    given: Semaphore,
    left: AtomicBool,
    /// The failures of nodes that could not be freed yet.
    pub(super) trouble: Trouble,
}

impl Default for Word {
    fn default() -> Self {
        Self { given: Semaphore::new(0), left: AtomicBool::new(false), trouble: Trouble::default() }
    }
}

impl Word {
    pub(super) fn give(&self, fate: Fate) {
        if !self.given.is_closed() {
            self.left.store(fate == Fate::Left, Ordering::Release);
            self.given.close();
        }
    }

    /// Completes when the decision is made.
    pub(super) async fn told(&self) -> Fate {
        let _ = self.given.acquire().await;
        if self.left.load(Ordering::Acquire) { Fate::Left } else { Fate::Freed }
    }
}
