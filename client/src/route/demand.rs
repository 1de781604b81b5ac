//! How many callers wait until another server becomes the master of a slot, for the task that looks
//! out for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The count, and the task that is notified when the first caller waits.
#[derive(Default)]
pub(crate) struct Demand {
    waiting: AtomicUsize,
    begun: Arc<Notify>,
}

impl Demand {
    pub(super) fn new(begun: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { waiting: AtomicUsize::new(0), begun })
    }

    /// A caller waits, until it drops what it gets.
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

/// A caller that waits.
pub(crate) struct Waiting(Arc<Demand>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
