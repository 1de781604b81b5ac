//! Sends requests again when that is safe.

use std::pin::pin;
use std::time::Duration;

use redis::{Cmd, Value};

use super::connection::Left;
use super::{Confirm, Repeats, Request, Router};
use crate::env::{Boottime, within};
use crate::error::{Error, Result};
use crate::script::Call;
use crate::wire::Slot;
use crate::work::Trouble;

/// Receives the error of each attempt that is retried. If the time ends now, it is the error of the
/// whole call.
pub(crate) type OnFailure<'a> = &'a (dyn Fn(&Error) + Send + Sync);

/// The limits within which a request is retried.
#[derive(Clone, Copy)]
pub(crate) struct Persistence<'a> {
    /// The time after which the request is not sent any more.
    pub(crate) until: Boottime,
    /// True if the request is retried as often as time allows, whatever limit the configuration
    /// sets.
    pub(crate) is_unlimited: bool,
    /// The time for which the server remembers that it executed the request. It limits the retries
    /// once a reply was lost.
    pub(crate) memory: Duration,
    pub(crate) failed: OnFailure<'a>,
}

/// The outcome of a call that the server remembers.
pub(crate) struct Remembered {
    pub(crate) reply: Value,
    /// True if no earlier request of this call can still be executed.
    pub(crate) is_final: bool,
    /// True if the reply to an earlier request was lost, so that it may have been executed.
    pub(crate) was_lost: bool,
}

impl Router {
    /// Runs a call that may run twice without harm, within the call timeout. Retries after
    /// transient errors. After a lost reply it retries only once the earlier request certainly will
    /// not be executed later.
    pub(crate) async fn run_repeatable(&self, call: &Call) -> Result<Value> {
        self.in_time(call.slot(), Request::Script(call), &|_| ()).await
    }

    /// As [`Router::run_repeatable`], without confirmation by replicas.
    pub(crate) async fn run_unconfirmed(&self, call: &Call) -> Result<Value> {
        self.in_time(call.slot(), Request::Unconfirmed(call), &|_| ()).await
    }

    /// As [`Router::run_repeatable`], for a call whose outcome the server remembers for as long as
    /// needed. It is retried after every lost reply, within `persistence`.
    pub(crate) async fn run_remembered(
        &self,
        call: &Call,
        confirm: Confirm,
        persistence: &Persistence<'_>,
    ) -> Result<Remembered> {
        self.repeat(call.slot(), Request::Remembered(call, confirm), persistence).await
    }

    /// As [`Router::run_repeatable`], within `persistence`.
    pub(crate) async fn run_persistently(
        &self,
        call: &Call,
        confirm: Confirm,
        persistence: &Persistence<'_>,
    ) -> Result<Remembered> {
        let request = match confirm {
            Confirm::AsConfigured => Request::Script(call),
            Confirm::No => Request::Unconfirmed(call),
        };
        self.repeat(call.slot(), request, persistence).await
    }

    /// Runs a plain read-only command, within the call timeout.
    pub(crate) async fn ask(&self, slot: Slot, command: &Cmd) -> Result<Value> {
        self.ask_noting(slot, command, &|_| ()).await
    }

    /// As [`Router::ask`]; reports each failed attempt to `failed`.
    pub(crate) async fn ask_noting(&self, slot: Slot, command: &Cmd, failed: OnFailure<'_>) -> Result<Value> {
        self.in_time(slot, Request::Question(command), failed).await
    }

    /// Runs a request within the call timeout. If the time ends first, the error is that of the
    /// last attempt.
    async fn in_time(&self, slot: Slot, request: Request<'_>, failed: OnFailure<'_>) -> Result<Value> {
        let (time, trouble) = (self.config.call_timeout, Trouble::default());
        let note = |error: &Error| {
            trouble.failed(error);
            failed(error);
        };
        // Not the limit in effect: the call timeout below ends the retries earlier.
        let until = self.env.boottime() + time.saturating_mul(2);
        let persistence = Persistence { until, is_unlimited: false, memory: time, failed: &note };
        let asked = pin!(self.repeat(slot, request, &persistence));
        let done = within(&*self.env, self.env.now() + time, asked).await;
        done.map_or_else(|| Err(trouble.overdue(time)), |done| done.map(|done| done.reply))
    }

    /// Runs a plain command once.
    pub(crate) async fn ask_once(&self, slot: Slot, command: &Cmd) -> Result<Value> {
        let mut path = self.path(slot).await?;
        self.once(slot, &mut path, &Request::Question(command)).await
    }

    async fn repeat(
        &self,
        slot: Slot,
        request: Request<'_>,
        persistence: &Persistence<'_>,
    ) -> Result<Remembered> {
        if let Request::Script(call) | Request::Unconfirmed(call) | Request::Remembered(call, _) = &request {
            self.check(call)?;
        }
        let mut repeats = Repeats::default();
        // The connections that took the request without a reply, and the error of the last of them.
        let (mut unanswered, mut lost): (Vec<Left>, Option<Error>) = (Vec::new(), None);
        let (mut until, told) = (persistence.until, Trouble::default());
        loop {
            let destination = self.destination(slot);
            // Look the path up each time: a redirection may have changed it.
            let done = match self.path(slot).await {
                Ok(mut path) => {
                    let is_final = unanswered.iter().all(Left::is_fenced);
                    if let (false, Request::Script(_) | Request::Unconfirmed(_), Some(error)) =
                        (is_final, &request, &lost)
                    {
                        return Err(told.last().unwrap_or_else(|| error.clone()).made_as_definite_as(error));
                    }
                    let sent = self.env.boottime();
                    let done = self.once(slot, &mut path, &request).await;
                    if let Err(error) = &done
                        && error.is_lost_reply()
                    {
                        unanswered.push(path.leave());
                        lost = Some(error.clone());
                        if let Request::Remembered(..) = &request {
                            // A request sent before this time arrives while the server still
                            // remembers the earlier one.
                            let memory = persistence.memory.saturating_sub(self.config.response_limit());
                            until = until.min(sent + memory);
                        }
                    }
                    done.map(|reply| Remembered { reply, is_final, was_lost: lost.is_some() })
                }
                Err(error) => Err(error),
            };
            let error = match done {
                Err(error) => error,
                done => return done,
            };
            let is_passing = error.is_transient() || error.is_lost_reply();
            // An earlier request may have been executed, whatever the last attempt returned.
            let error = if lost.is_some() { error.made_indefinite() } else { error };
            let may_repeat = persistence.is_unlimited || self.config.may_repeat(repeats.number());
            if !is_passing {
                return Err(error);
            }
            told.failed(&error);
            // An earlier error reply of a server is more informative than a missing reply.
            let last = || told.last().map_or_else(|| error.clone(), |told| told.made_as_definite_as(&error));
            if !may_repeat {
                return Err(last());
            }
            let delay = self.config.retry_delay(&*self.env, repeats.number());
            if self.env.boottime() + delay >= until {
                return Err(last());
            }
            (persistence.failed)(&error);
            self.pause(&destination, &error, delay, &mut repeats).await;
        }
    }
}
