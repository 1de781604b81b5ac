//! Tracks the progress of an acquisition, for a caller whose time ends before the work does.

use std::sync::Mutex;
use std::time::Duration;

use crate::env::{Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;

/// Written by the task that acquires, read by its caller.
pub(crate) struct Progress(Mutex<State>);

struct State {
    /// The time since which the current query has no answer; `None` while a waiter sleeps.
    asking_since: Option<Monotonic>,
    /// The time until which the current query lasts at least.
    lasts_until: Option<Monotonic>,
    /// True if the current query may have reached a server.
    sent: bool,
    /// The error of the last failed attempt, if no answer has come since.
    failure: Option<Error>,
    /// True if a server has answered that another owner has the lock.
    refused: bool,
}

impl Progress {
    pub(crate) fn new(begun: Monotonic) -> Self {
        Self(Mutex::new(State {
            asking_since: Some(begun),
            lasts_until: None,
            sent: false,
            failure: None,
            refused: false,
        }))
    }

    /// Begins a query, which may take several attempts.
    pub(crate) fn asking(&self, now: Monotonic) {
        let mut state = locked(&self.0);
        if state.asking_since.is_none() {
            (state.asking_since, state.lasts_until) = (Some(now), None);
        }
        state.sent = false;
    }

    /// Records that a server has answered again, but not what the query asked for. So the query is
    /// sent once more, and lasts at least until this time. A query is extended once, however often
    /// a server answers other questions.
    pub(crate) fn heard(&self, until: Monotonic) {
        locked(&self.0).lasts_until.get_or_insert(until);
    }

    /// Records that a request is under way.
    pub(crate) fn sent(&self) {
        locked(&self.0).sent = true;
    }

    /// Records that an attempt failed.
    pub(crate) fn failed(&self, error: &Error) {
        let mut state = locked(&self.0);
        state.sent = !error.is_definite();
        // Keep an earlier error reply of a server rather than a missing reply.
        if state.failure.is_none() || !error.is_silence() {
            state.failure = Some(error.clone());
        }
    }

    /// Returns the error of the last failed attempt, if no answer has come since.
    pub(crate) fn last_failure(&self) -> Option<Error> {
        locked(&self.0).failure.clone()
    }

    /// Returns `error`, the last one of a query, or the refusal of a server before it if `error`
    /// says only that no reply came. The result is as definite as `error`.
    pub(crate) fn refusal_or(&self, error: Error) -> Error {
        let earlier = self.last_failure().filter(|earlier| error.is_silence() && !earlier.is_silence());
        earlier.map_or_else(|| error.clone(), |earlier| earlier.made_as_definite_as(&error))
    }

    /// Returns the time until which the caller waits for the answer to the current query, if it
    /// waits at most `patience`. `None` if no query is under way.
    pub(crate) fn waits_until(&self, patience: Duration) -> Option<Monotonic> {
        let state = locked(&self.0);
        let until = state.asking_since? + patience;
        Some(state.lasts_until.map_or(until, |least| least.max(until)))
    }

    /// Notes the answer that another owner has the lock.
    pub(crate) fn refused(&self) {
        *locked(&self.0) =
            State { asking_since: None, lasts_until: None, sent: false, failure: None, refused: true };
    }

    /// Returns the error if no answer came within `time`; `Ok` if the reason is that another owner
    /// has the lock.
    fn excuse(&self, time: Duration) -> Result<()> {
        let state = locked(&self.0);
        let error = match &state.failure {
            Some(error) => error.clone(),
            None if state.refused => return Ok(()),
            None => Error::indefinite(ErrorKind::ResponseTimeout(time)),
        };
        Err(if state.sent { error.made_indefinite() } else { error.made_definite() })
    }

    /// Returns the outcome of an acquisition that began at `begun`. Normally that is `answered`. It
    /// is `None` if `wait` is over and another owner has the lock. It is an error if a query is
    /// unanswered at the end of `wait`, or for as long as `patience`.
    pub(crate) async fn outcome<T>(
        &self,
        env: &dyn Env,
        begun: Monotonic,
        wait: Option<Duration>,
        patience: Duration,
        answered: impl Future<Output = Result<Option<T>>>,
    ) -> Result<Option<T>> {
        let end = wait.map(|wait| begun + wait);
        tokio::pin!(answered);
        loop {
            let limit = self.waits_until(patience).unwrap_or_else(|| env.now() + patience);
            let limit = end.map_or(limit, |end| end.min(limit));
            if let Some(outcome) = within(env, limit, &mut answered).await {
                return outcome;
            }
            let now = env.now();
            if let (Some(end), Some(wait)) = (end, wait)
                && now >= end
            {
                return self.excuse(wait).map(|()| None);
            }
            // Check again: the query may have been answered and another one begun.
            if self.waits_until(patience).is_some_and(|until| now >= until) {
                self.excuse(patience)?;
                return Err(Error::indefinite(ErrorKind::ResponseTimeout(patience)));
            }
        }
    }
}
