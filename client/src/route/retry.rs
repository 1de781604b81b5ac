//! Sending again when that is safe.

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

/// Notes what a try has come to that is repeated: the error of the whole, if it ended now.
pub(crate) type OnFailure<'a> = &'a (dyn Fn(&Error) + Send + Sync);

/// How long a request is repeated.
#[derive(Clone, Copy)]
pub(crate) struct Persistence<'a> {
    /// It is not sent any more.
    pub(crate) until: Boottime,
    /// It is repeated as often as the time allows, whatever the configuration says of calls.
    pub(crate) is_unlimited: bool,
    /// From a request whose reply was lost on: how long a server knows that it was obeyed.
    pub(crate) memory: Duration,
    pub(crate) failed: OnFailure<'a>,
}

/// What came of a call that the server remembers.
pub(crate) struct Remembered {
    pub(crate) reply: Value,
    /// No request of this call can be obeyed later.
    pub(crate) is_final: bool,
    /// An earlier request may have been obeyed, whose reply was lost.
    pub(crate) was_lost: bool,
}

impl Router {
    /// Runs a call that may run twice without harm, within the time of a call of the application.
    /// It is repeated after transient errors, and after lost replies once it is certain that the
    /// earlier request will not be obeyed later.
    pub(crate) async fn run_repeatable(&self, call: &Call) -> Result<Value> {
        self.in_time(call.slot(), Request::Script(call), &|_| ()).await
    }

    /// As [`Router::run_repeatable`], without asking replicas to confirm.
    pub(crate) async fn run_unconfirmed(&self, call: &Call) -> Result<Value> {
        self.in_time(call.slot(), Request::Unconfirmed(call), &|_| ()).await
    }

    /// As [`Router::run_repeatable`], of a call that the server itself remembers for as long as
    /// that is of use. It is repeated in any case, for as long as `persistence` says.
    pub(crate) async fn run_remembered(
        &self,
        call: &Call,
        confirm: Confirm,
        persistence: &Persistence<'_>,
    ) -> Result<Remembered> {
        self.repeat(call.slot(), Request::Remembered(call, confirm), persistence).await
    }

    /// As [`Router::run_repeatable`], for as long as `persistence` says.
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

    /// Runs a plain command that changes nothing, within the time of a call of the application.
    pub(crate) async fn ask(&self, slot: Slot, command: &Cmd) -> Result<Value> {
        self.ask_noting(slot, command, &|_| ()).await
    }

    /// As [`Router::ask`], with a word on each try that fails.
    pub(crate) async fn ask_noting(&self, slot: Slot, command: &Cmd, failed: OnFailure<'_>) -> Result<Value> {
        self.in_time(slot, Request::Question(command), failed).await
    }

    /// The outcome of a request within the time of a call of the application. What the last try has
    /// come to is the error at the end of that.
    async fn in_time(&self, slot: Slot, request: Request<'_>, failed: OnFailure<'_>) -> Result<Value> {
        let (time, trouble) = (self.config.call_timeout, Trouble::default());
        let note = |error: &Error| {
            trouble.failed(error);
            failed(error);
        };
        // Whatever the configuration allows, which ends with the time.
        let until = self.env.boottime() + time.saturating_mul(2);
        let persistence = Persistence { until, is_unlimited: false, memory: time, failed: &note };
        let asked = pin!(self.repeat(slot, request, &persistence));
        let done = within(&*self.env, self.env.now() + time, asked).await;
        done.map_or_else(|| Err(trouble.overdue(time)), |done| done.map(|done| done.reply))
    }

    /// Runs a plain command once.
    pub(crate) async fn ask_once(&self, slot: Slot, command: &Cmd) -> Result<Value> {
        let mut lane = self.lane(slot).await?;
        self.once(slot, &mut lane, &Request::Question(command)).await
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
        // The connections that took the request and brought no reply, and the last error of one.
        let (mut unanswered, mut lost): (Vec<Left>, Option<Error>) = (Vec::new(), None);
        let (mut until, told) = (persistence.until, Trouble::default());
        loop {
            let outlook = self.outlook(slot);
            // Looked up each time: a redirection may have changed it.
            let done = match self.lane(slot).await {
                Ok(mut lane) => {
                    let is_final = unanswered.iter().all(Left::is_fenced);
                    if let (false, Request::Script(_) | Request::Unconfirmed(_), Some(error)) =
                        (is_final, &request, &lost)
                    {
                        return Err(error.clone());
                    }
                    let sent = self.env.boottime();
                    let done = self.once(slot, &mut lane, &request).await;
                    if let Err(error) = &done
                        && error.is_lost_reply()
                    {
                        unanswered.push(lane.leave());
                        lost = Some(error.clone());
                        if let Request::Remembered(..) = &request {
                            // What is sent by then arrives while the server still knows.
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
            // What was sent before may have been obeyed, whatever became of the last attempt.
            let error = if lost.is_some() { error.made_indefinite() } else { error };
            let may_repeat = persistence.is_unlimited || self.config.may_repeat(repeats.number());
            if !is_passing {
                return Err(error);
            }
            told.failed(&error);
            // What a server has said before is worth more than the want of a reply.
            let last = || told.last().map_or_else(|| error.clone(), |told| told.made_as_definite_as(&error));
            if !may_repeat {
                return Err(last());
            }
            let delay = self.config.retry_delay(&*self.env, repeats.number());
            if self.env.boottime() + delay >= until {
                return Err(last());
            }
            (persistence.failed)(&error);
            self.pause(&outlook, &error, delay, &mut repeats).await;
        }
    }
}
