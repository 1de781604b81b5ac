//! What becomes of the nodes that a Redlock has set: one word to all of them, and the tasks that
//! wait for it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use crate::work::Trouble;

/// What shall become of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Freed,
    /// They keep the lock until its lease ends.
    Left,
}

/// The word on the fate of the nodes. The first one counts.
///
/// A semaphore wakes waiters in the order of their arrival. A `tokio::sync::watch` would draw the
/// order from the thread's own random numbers, and a simulated run would not repeat itself.
pub(super) struct Word {
    /// Has no permits: all that can come is its end.
    given: Semaphore,
    left: AtomicBool,
    /// Of the nodes that are to be freed and could not be yet.
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

    /// Completes when the word is given.
    pub(super) async fn told(&self) -> Fate {
        let _ = self.given.acquire().await;
        if self.left.load(Ordering::Acquire) { Fate::Left } else { Fate::Freed }
    }
}
