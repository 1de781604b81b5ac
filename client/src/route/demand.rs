//! Counts the callers that wait for a new master of a slot, for the task that watches for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The count, and the notification for the task when the first caller begins to wait.
#[derive(Default)]
pub(crate) struct Demand {
    waiting: AtomicUsize,
    begun: Arc<Notify>,
}

impl Demand {
    pub(super) fn new(begun: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { waiting: AtomicUsize::new(0), begun })
    }

    /// Registers a waiting caller; dropping the guard unregisters it.
    pub(super) fn begin(self: &Arc<Self>) -> Waiting {
        if self.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            self.begun.notify_one();
        }
        Waiting(self.clone())
    }

    pub(super) fn is_any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

/// The registration of a waiting caller.
pub(crate) struct Waiting(Arc<Demand>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
