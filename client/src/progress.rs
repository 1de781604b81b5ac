//! How far an acquisition has come, for a caller whose time ends before the work does.

use std::sync::Mutex;
use std::time::Duration;

use crate::env::{Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;

/// Written by the task that acquires, read by its caller.
pub(crate) struct Progress(Mutex<State>);

struct State {
    /// Since when there is a question without an answer; `None` while a waiter sleeps.
    asking_since: Option<Monotonic>,
    /// The question that is open may have reached a server.
    sent: bool,
    /// What became of the last try, when that was no answer.
    failure: Option<Error>,
    /// A server has answered that another owner has the lock.
    refused: bool,
}

impl Progress {
    pub(crate) fn new(begun: Monotonic) -> Self {
        Self(Mutex::new(State { asking_since: Some(begun), sent: false, failure: None, refused: false }))
    }

    /// A question begins, with as many tries as it takes.
    pub(crate) fn asking(&self, now: Monotonic) {
        let mut state = locked(&self.0);
        state.asking_since.get_or_insert(now);
        state.sent = false;
    }

    /// A request is under way.
    pub(crate) fn sent(&self) {
        locked(&self.0).sent = true;
    }

    /// A try came to nothing.
    pub(crate) fn failed(&self, error: &Error) {
        let mut state = locked(&self.0);
        state.sent = !error.is_definite();
        // What a server has said outlasts the want of a reply.
        if state.failure.is_none() || !error.is_silence() {
            state.failure = Some(error.clone());
        }
    }

    /// What became of the last try, when that was no answer.
    pub(crate) fn last_failure(&self) -> Option<Error> {
        locked(&self.0).failure.clone()
    }

    /// Until when the caller waits for the answer to the question that is open, if it waits for no
    /// more than `patience`.
    pub(crate) fn waits_until(&self, patience: Duration) -> Option<Monotonic> {
        locked(&self.0).asking_since.map(|since| since + patience)
    }

    /// The answer: another owner has the lock.
    pub(crate) fn refused(&self) {
        *locked(&self.0) = State { asking_since: None, sent: false, failure: None, refused: true };
    }

    /// Why there is no answer after `time`; `Ok` when that is because another owner has the lock.
    fn excuse(&self, time: Duration) -> Result<()> {
        let state = locked(&self.0);
        let error = match &state.failure {
            Some(error) => error.clone(),
            None if state.refused => return Ok(()),
            None => Error::indefinite(ErrorKind::ResponseTimeout(time)),
        };
        Err(if state.sent { error.made_indefinite() } else { error.made_definite() })
    }

    /// The outcome of an acquisition that began at `begun`: what `answered` says, `None` when
    /// `wait` is over and another owner has the lock, and an error when a question stays without an
    /// answer until then, or for as long as `patience`.
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
            // Looked at again: the question may have been answered meanwhile, and another asked.
            let asking_since = locked(&self.0).asking_since;
            if asking_since.is_some_and(|since| now >= since + patience) {
                self.excuse(patience)?;
                return Err(Error::indefinite(ErrorKind::ResponseTimeout(patience)));
            }
        }
    }
}
