//! Sending again when that is safe.

use std::pin::pin;

use redis::{Cmd, Value};

use super::connection::Left;
use super::{Confirm, Repeats, Request, Router};
use crate::env::within;
use crate::error::{Error, ErrorKind, Result};
use crate::script::Call;
use crate::wire::Slot;

impl Router {
    /// Runs a call that may run twice without harm, within the time of a call of the application. It is repeated after
    /// transient errors, and after lost replies once it is certain that the earlier request will not be obeyed later.
    pub(crate) async fn run_repeatable(&self, call: &Call) -> Result<Value> {
        self.in_time(pin!(self.repeat(call.slot(), Request::Script(call)))).await.map(|(reply, _)| reply)
    }

    /// As [`Router::run_repeatable`], for as long as its repeats take, and without asking replicas to confirm.
    pub(crate) async fn run_unconfirmed(&self, call: &Call) -> Result<Value> {
        self.repeat(call.slot(), Request::Unconfirmed(call)).await.map(|(reply, _)| reply)
    }

    /// As [`Router::run_repeatable`], of a call that the server itself remembers for as long as that is of use. It is
    /// repeated in any case. Also says whether the reply is final: no request of this call can be obeyed later.
    pub(crate) async fn run_remembered(&self, call: &Call, confirm: Confirm) -> Result<(Value, bool)> {
        self.repeat(call.slot(), Request::Remembered(call, confirm)).await
    }

    /// Runs a plain command that changes nothing, within the time of a call of the application.
    pub(crate) async fn ask(&self, slot: Slot, command: &Cmd) -> Result<Value> {
        self.in_time(pin!(self.repeat(slot, Request::Question(command)))).await.map(|(reply, _)| reply)
    }

    /// The outcome of `work` within the time of a call of the application.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T>> + Unpin) -> Result<T> {
        let time = self.config.call_timeout;
        let done = within(&*self.env, self.env.now() + time, work).await;
        done.unwrap_or_else(|| Err(Error::indefinite(ErrorKind::ResponseTimeout(time))))
    }

    /// Runs a plain command once.
    pub(crate) async fn ask_once(&self, slot: Slot, command: &Cmd) -> Result<Value> {
        let mut lane = self.lane(slot).await?;
        self.once(slot, &mut lane, &Request::Question(command)).await
    }

    async fn repeat(&self, slot: Slot, request: Request<'_>) -> Result<(Value, bool)> {
        if let Request::Script(call) | Request::Unconfirmed(call) | Request::Remembered(call, _) = &request {
            self.check(call)?;
        }
        let mut repeats = Repeats::default();
        // The connections that took the request and brought no reply, and the last error of one.
        let (mut unanswered, mut lost): (Vec<Left>, Option<Error>) = (Vec::new(), None);
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
                    let done = self.once(slot, &mut lane, &request).await;
                    if let Err(error) = &done
                        && error.is_lost_reply()
                    {
                        unanswered.push(lane.leave());
                        lost = Some(error.clone());
                    }
                    done.map(|reply| (reply, is_final))
                }
                Err(error) => Err(error),
            };
            match done {
                Err(error) if self.may_repeat(&error, repeats.number()) => {
                    let delay = self.config.retry_delay(&*self.env, repeats.number());
                    self.pause(&outlook, &error, delay, &mut repeats).await;
                }
                // What was sent before may have been obeyed, whatever became of the last attempt.
                Err(error) if lost.is_some() => return Err(error.made_indefinite()),
                done => return done,
            }
        }
    }

    fn may_repeat(&self, error: &Error, attempt: u32) -> bool {
        attempt < self.config.retry_attempts && (error.is_transient() || error.is_lost_reply())
    }
}
