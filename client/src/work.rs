//! The background work of a client, and its end when the client closes.

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
    /// Registers work; dropping the token ends it.
    pub(crate) fn begin(self: &Arc<Self>) -> Token {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        Token(self.clone())
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    /// Refuses new work from now on.
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

    /// Completes when no work is under way.
    pub(crate) async fn done(&self) {
        self.until(|| self.under_way() == 0).await;
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        loop {
            // Register for the notification before checking, or a change in between is lost.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if condition() {
                return;
            }
            changed.await;
        }
    }
}

/// The error of the last attempt of work that is retried, for a caller whose time ends before the
/// work does.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<Box<Error>>>);

impl Trouble {
    /// Notes a failed attempt. An earlier error reply of a server is kept rather than a missing
    /// reply.
    pub(crate) fn failed(&self, error: &Error) {
        let mut last = locked(&self.0);
        if last.is_none() || !error.is_silence() {
            *last = Some(Box::new(error.clone()));
        }
    }

    /// Clears the error: the work is done.
    pub(crate) fn end(&self) {
        *locked(&self.0) = None;
    }

    pub(crate) fn last(&self) -> Option<Error> {
        locked(&self.0).as_deref().cloned()
    }

    /// Returns the error of work that is unfinished after `time`, but may still succeed.
    pub(crate) fn overdue(&self, time: Duration) -> Error {
        let last = self.last().map(Error::made_indefinite);
        last.unwrap_or_else(|| Error::indefinite(ErrorKind::ResponseTimeout(time)))
    }
}

/// Unfinished work: see [`Work::begin`].
pub(crate) struct Token(Arc<Work>);

impl Drop for Token {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}
