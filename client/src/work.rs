//! What a client has under way, and the end of it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::{Error, ErrorKind};
use crate::mutex::locked;

/// Counts the work of one client that continues without its caller.
#[derive(Default)]
pub(crate) struct Work {
    under_way: AtomicUsize,
    closing: AtomicBool,
    /// Notified when the last work has ended, and when the client is closed.
    changed: Notify,
}

impl Work {
    /// Something is under way until the token is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Token {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        Token(self.clone())
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    /// From here on no lock is asked for.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Completes when the client is closed.
    pub(crate) async fn closing(&self) {
        self.until(|| self.is_closing()).await;
    }

    /// Completes when nothing is under way.
    pub(crate) async fn done(&self) {
        self.until(|| self.under_way() == 0).await;
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        loop {
            // In line before the look, so that a change in between is not missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if condition() {
                return;
            }
            changed.await;
        }
    }
}

/// What the last try of work that is repeated has come to, for a caller whose time ends before the
/// work does.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<Box<Error>>>);

impl Trouble {
    /// A try came to nothing. What a server has said outlasts the want of a reply.
    pub(crate) fn failed(&self, error: &Error) {
        let mut last = locked(&self.0);
        if last.is_none() || !error.is_silence() {
            *last = Some(Box::new(error.clone()));
        }
    }

    /// The work is done.
    pub(crate) fn end(&self) {
        *locked(&self.0) = None;
    }

    pub(crate) fn last(&self) -> Option<Error> {
        locked(&self.0).as_deref().cloned()
    }

    /// The error of work that may yet be done, after `time`.
    pub(crate) fn overdue(&self, time: Duration) -> Error {
        let last = self.last().map(Error::made_indefinite);
        last.unwrap_or_else(|| Error::indefinite(ErrorKind::ResponseTimeout(time)))
    }
}

/// See [`Work::begin`].
pub(crate) struct Token(Arc<Work>);

impl Drop for Token {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}
