//! The wait loop of every acquisition: attempt, wait, attempt again. The same for all kinds of
//! locks.
//!
//! The work runs in its own task. If the caller drops its future in the middle of a request, the
//! task still reads the reply, and releases a late grant.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::attempt::{Answer, Sleep};
use crate::env::{Env, Monotonic, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::observer::{EventKind, Outcome};
use crate::progress::Progress;
use crate::route::Repeats;
use crate::session::Session;
use crate::task::answer_of;
use crate::wake::{HeldBack, RoundTrip, Subscription};
use crate::wire::Slot;
use crate::work::Token;

/// The least time of a caller that lets others come first. It is longer than they are let first.
const PATIENT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    NoWait,
    For(Duration),
    Unbounded,
}

impl WaitLimit {
    /// Returns the time of a caller that waits for a limited, non-zero time.
    fn time(self) -> Option<Duration> {
        match self {
            Self::For(wait) if !wait.is_zero() => Some(wait),
            _ => None,
        }
    }
}

/// An object that is requested until it is granted.
pub(crate) trait Wanted: Send + 'static {
    type Got: Send + 'static;

    /// Attempts once. If the caller [is gone](Caller::is_gone), a grant is released before this
    /// returns.
    fn ask(
        &mut self,
        caller: &mut Caller<Self::Got>,
    ) -> impl Future<Output = Result<Answer<Self::Got>>> + Send;

    /// Subscribes to the messages that may end the wait. `None` if no messages exist and the waiter
    /// polls.
    fn listen(&self) -> Option<Subscription> {
        None
    }

    /// Returns the limits of a wait before the first request, if waiters of other clients come
    /// first.
    fn held_back(&self) -> Option<HeldBack> {
        None
    }

    /// Returns the time to sleep after this answer if no message comes.
    fn sleep(&mut self, busy: Sleep) -> Duration;

    /// Returns the delay before an attempt is retried after a transient error, given the number of
    /// earlier retries. `None` ends the retries.
    fn repeat_delay(&self, repeats: u32) -> Option<Duration>;

    /// Returns the slot of the object, if one master has all of it.
    fn slot(&self) -> Option<Slot> {
        None
    }

    /// Returns true if no further attempt is made, although the caller would wait.
    fn is_exhausted(&self) -> bool {
        false
    }

    /// Adds an explanation to a refused subscription.
    fn explained(&self, refusal: Error) -> Error {
        refusal
    }

    /// Emits an event of the wait.
    fn emit(&self, _kind: EventKind<'_>) {}

    /// Called when the wait ends without a grant.
    fn give_up(&mut self) {}
}

/// Gets `wanted`. Returns `None` if the caller's time ends first.
pub(crate) async fn wait<W: Wanted>(
    session: &Arc<Session>,
    limit: WaitLimit,
    wanted: W,
) -> Result<Option<W::Got>> {
    let env = session.ctx.env.clone();
    let begun = env.now();
    let progress = Arc::new(Progress::new(begun));
    let seen = progress.clone();
    let answered =
        answer_of(&*env, |answer| Caller::new(session, limit, begun, progress, answer).serve(wanted));
    // If the time ends first, the task undoes the request that is under way.
    seen.outcome(&*env, begun, limit.time(), session.config.call_timeout, answered).await
}

/// The caller of an acquisition, as seen by the task that does the work.
pub(crate) struct Caller<T> {
    session: Arc<Session>,
    limit: WaitLimit,
    begun: Monotonic,
    end: Option<Monotonic>,
    /// Taken when the caller gets its answer, which may be before the work is done.
    answer: Option<oneshot::Sender<Result<Option<T>>>>,
    pub(crate) progress: Arc<Progress>,
    _under_way: Token,
}

impl<T: Send + 'static> Caller<T> {
    fn new(
        session: &Arc<Session>,
        limit: WaitLimit,
        begun: Monotonic,
        progress: Arc<Progress>,
        answer: oneshot::Sender<Result<Option<T>>>,
    ) -> Self {
        let end = match limit {
            WaitLimit::For(wait) => Some(begun + wait),
            WaitLimit::NoWait | WaitLimit::Unbounded => None,
        };
        let under_way = session.ctx.work.begin();
        Self {
            session: session.clone(),
            limit,
            begun,
            end,
            answer: Some(answer),
            progress,
            _under_way: under_way,
        }
    }

    fn env(&self) -> &dyn Env {
        self.session.env()
    }

    /// Returns true if no result can reach the caller any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Answers the caller. A guard that the caller does not receive is dropped and thus released.
    pub(crate) fn answer(&mut self, outcome: Result<Option<T>>) {
        if let Some(answer) = self.answer.take() {
            drop(answer.send(outcome));
        }
    }

    /// Returns true if the caller is gone, its time is up, or the client is closing.
    fn has_given_up(&self) -> bool {
        let is_late = self.end.is_some_and(|end| self.env().now() >= end);
        is_late || self.is_gone() || self.session.ctx.work.is_closing()
    }

    /// Waits for a permit to send a request; the number of requests on the wire is limited. If the
    /// caller is gone before it gets one, nothing is sent. A caller with a wait of zero still sends
    /// one request if a permit is free immediately.
    pub(crate) async fn turn<'s>(&mut self, session: &'s Session) -> Result<impl Drop + Send + 's> {
        let is_instant = self.limit == WaitLimit::For(Duration::ZERO);
        let is_over = self.is_gone() || session.ctx.work.is_closing();
        if !is_over
            && (is_instant || !self.has_given_up())
            && let Ok(permit) = session.asks.try_acquire()
        {
            return Ok(permit);
        }
        Ok(self.unless_given_up(session.asks.acquire()).await?.expect("never closed"))
    }

    /// Returns the outcome of `work`, which sends nothing, unless the caller [gives
    /// up](Caller::has_given_up) first.
    pub(crate) async fn unless_given_up<W>(&mut self, work: impl Future<Output = W>) -> Result<W> {
        tokio::select! {
            biased;
            () = self.given_up() => Err(self.session.config.no_reply().made_definite()),
            done = work => Ok(done),
        }
    }

    /// Completes when the caller [has given up](Caller::has_given_up).
    pub(crate) async fn given_up(&mut self) {
        let end = self.end.map(|end| self.env().sleep_until(end));
        let ended = async {
            match end {
                Some(end) => end.await,
                None => std::future::pending().await,
            }
        };
        let gone = async {
            match &mut self.answer {
                Some(answer) => answer.closed().await,
                // The caller has its answer; the remaining work ends by itself.
                None => std::future::pending().await,
            }
        };
        let work = self.session.ctx.work.clone();
        tokio::select! {
            biased;
            () = gone => {}
            () = ended => {}
            () = work.closing() => {}
        }
    }

    async fn serve<W: Wanted<Got = T>>(mut self, mut wanted: W) {
        if self.is_gone() {
            return;
        }
        let work = self.session.ctx.work.clone();
        if work.is_closing() {
            self.answer(Err(Error::definite(ErrorKind::Closed)));
            return;
        }
        let outcome = match self.get(&mut wanted).await {
            // The caller has not given up: the client is closing.
            Ok(None) if work.is_closing() => Err(Error::definite(ErrorKind::Closed)),
            outcome => outcome,
        };
        let told = match &outcome {
            Ok(Some(_)) => Outcome::Granted,
            Ok(None) => Outcome::Taken,
            Err(error) => Outcome::Failed(error),
        };
        wanted.emit(EventKind::Finished { outcome: told, waited: self.env().now() - self.begun });
        if !matches!(outcome, Ok(Some(_))) {
            wanted.give_up();
        }
        self.answer(outcome);
    }

    async fn get<W: Wanted<Got = T>>(&mut self, wanted: &mut W) -> Result<Option<T>> {
        if let Some(held_back) = self.held_back(wanted)
            && let Some(subscription) = wanted.listen()
        {
            // Boxed because it is rare: it must not enlarge every acquisition.
            let subscription = Box::pin(self.line_up(subscription, held_back)).await;
            if self.has_given_up() {
                return Ok(None);
            }
            if let Some(subscription) = subscription {
                return Box::pin(self.look_after_messages(wanted, &subscription)).await;
            }
        }
        let busy = match self.attempt(wanted).await? {
            Answer::Got(got) => return Ok(Some(got)),
            Answer::Busy(busy) => busy,
        };
        if self.limit == WaitLimit::NoWait || self.has_given_up() || wanted.is_exhausted() {
            return Ok(None);
        }
        // Boxed so that the acquisition of a free lock does not pay the memory of a wait.
        Box::pin(self.keep_asking(wanted, busy)).await
    }

    /// Returns the limits of a wait before the first request, if others come first and the caller
    /// has the time.
    fn held_back<W: Wanted<Got = T>>(&self, wanted: &W) -> Option<HeldBack> {
        let has_time = self.end.is_none_or(|end| end >= self.begun + PATIENT);
        if has_time && self.limit != WaitLimit::NoWait { wanted.held_back() } else { None }
    }

    /// Lets the waiters of other clients come first that the last release has woken. Returns the
    /// subscription by which this waiter counts them, if the server has confirmed it.
    async fn line_up(
        &mut self,
        subscription: Subscription,
        HeldBack { round_trip, until }: HeldBack,
    ) -> Option<Subscription> {
        let env = self.session.ctx.env.clone();
        // The time in which a request must be answered runs already, and is for the request.
        let limit = until.min(self.begun + self.session.config.call_timeout / 4);
        let is_confirmed = {
            let turn = pin!(subscription.first_turn(round_trip));
            tokio::select! {
                biased;
                is_confirmed = within(&*env, limit, turn) => is_confirmed.unwrap_or(false),
                () = self.given_up() => false,
            }
        };
        (is_confirmed && subscription.refusal().is_none()).then_some(subscription)
    }

    /// Attempts again after each message and each sleep, until a grant or until the caller gives
    /// up.
    async fn keep_asking<W: Wanted<Got = T>>(
        &mut self,
        wanted: &mut W,
        mut busy: Sleep,
    ) -> Result<Option<T>> {
        let env = self.session.ctx.env.clone();
        let Some(subscription) = wanted.listen() else {
            loop {
                let delay = wanted.sleep(busy);
                tokio::select! {
                    biased;
                    () = self.given_up() => return Ok(None),
                    () = pause(&*env, delay) => {}
                }
                busy = match self.attempt(wanted).await? {
                    Answer::Got(got) => return Ok(Some(got)),
                    Answer::Busy(busy) => busy,
                };
                if self.has_given_up() || wanted.is_exhausted() {
                    return Ok(None);
                }
            }
        };
        let patience = self.session.config.subscription_timeout;
        let limit = env.now() + patience;
        let confirmed = async { within(&*env, limit, pin!(subscription.confirmed())).await };
        tokio::select! {
            biased;
            confirmed = confirmed => match confirmed {
                Some(confirmed) => confirmed.map_err(|error| wanted.explained(error))?,
                None => {
                    let overdue = || Error::definite(ErrorKind::SubscribeTimeout(patience));
                    return Err(subscription.trouble().map_or_else(overdue, Error::made_definite));
                }
            },
            () = self.given_up() => return Ok(None),
        }
        self.look_after_messages(wanted, &subscription).await
    }

    /// Attempts now, and after each message and each sleep. The subscription is confirmed.
    async fn look_after_messages<W: Wanted<Got = T>>(
        &mut self,
        wanted: &mut W,
        subscription: &Subscription,
    ) -> Result<Option<T>> {
        let env = self.session.ctx.env.clone();
        let mut round_trip = RoundTrip::default();
        loop {
            let epoch = subscription.epoch();
            if let Some(error) = subscription.refusal() {
                return Err(wanted.explained(error));
            }
            // A message may have been missed before the subscription was confirmed.
            let asked = env.now();
            let answer = self.attempt(wanted).await?;
            round_trip.took(env.now() - asked);
            let busy = match answer {
                Answer::Got(got) => {
                    subscription.granted(round_trip.time());
                    return Ok(Some(got));
                }
                Answer::Busy(busy) => busy,
            };
            subscription.looked();
            if self.has_given_up() || wanted.is_exhausted() {
                return Ok(None);
            }
            let sleep = wanted.sleep(busy);
            wanted.emit(EventKind::Waiting { at_most: Some(sleep) });
            let limit = env.now() + sleep;
            tokio::select! {
                biased;
                by = subscription.wait(epoch, limit, round_trip.time()) => wanted.emit(EventKind::Woken { by }),
                () = self.given_up() => return Ok(None),
            }
        }
    }

    /// Attempts until there is an answer or an error that a retry cannot mend.
    async fn attempt<W: Wanted<Got = T>>(&mut self, wanted: &mut W) -> Result<Answer<T>> {
        let mut repeats = Repeats::default();
        self.progress.asking(self.env().now());
        let router = self.session.router.clone();
        loop {
            let destination = wanted.slot().map(|slot| router.destination(slot));
            let done = wanted.ask(self).await;
            match &done {
                Ok(Answer::Got(_)) => {}
                Ok(Answer::Busy(_)) => self.progress.refused(),
                Err(error) => self.progress.failed(error),
            }
            if self.answer.is_none() {
                // The caller has already got an error. A guard that was granted all the same is
                // dropped here and thus released.
                return Err(done.err().unwrap_or_else(Error::shutdown));
            }
            let error = match done {
                Err(error) if error.is_transient() && !wanted.is_exhausted() => error,
                done => return done.map_err(|error| self.progress.refusal_or(error)),
            };
            let Some(delay) = wanted.repeat_delay(repeats.number()) else {
                return Err(self.progress.refusal_or(error));
            };
            let env = self.session.ctx.env.clone();
            let delayed = async {
                match &destination {
                    Some(destination) => router.pause(destination, &error, delay, &mut repeats).await,
                    None => {
                        pause(&*env, delay).await;
                        repeats.add_one();
                    }
                }
            };
            tokio::select! {
                biased;
                () = delayed => {}
                () = self.given_up() => return Err(self.progress.refusal_or(error)),
            }
        }
    }
}
