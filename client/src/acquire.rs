//! Getting a single-server lock: ask, wait, ask again.
//!
//! The work runs in a task of its own, so that a caller who drops the future in the middle of a request leaves
//! somebody behind who sees the reply, and gives the lock back if it was granted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse};
use redis::Value;
use tokio::sync::oneshot;

use crate::config::{ReplicaWait, check_lease, millis};
use crate::env::{Boottime, Env, Monotonic, pause, within};
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::hold::{Grant as NewHold, Hold, OwnerState};
use crate::keeper::{Held, give_back};
use crate::key::Key;
use crate::observer::What;
use crate::progress::Progress;
use crate::protocol::{Answer, Ask, Protocol, remaining};
use crate::renew::{HASHES, Renewal};
use crate::route::Confirm;
use crate::route::connection::Connection;
use crate::session::Session;
use crate::task::answer_of;
use crate::wake::Subscription;
use crate::wire::drift_margin;
use crate::work::Token;

/// How long a caller is ready to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Once,
    For(Duration),
    Forever,
}

/// All there is to know to get a lock.
pub(crate) struct Request {
    pub(crate) session: Arc<Session>,
    pub(crate) protocol: &'static dyn Protocol,
    pub(crate) lock: Key,
    pub(crate) owner: String,
    /// `None` leaves the lease to the watchdog.
    pub(crate) lease: Option<Duration>,
    pub(crate) patience: Patience,
}

/// Gets the lock, or `None` when the caller's patience ends first.
pub(crate) async fn acquire(request: Request) -> Result<Option<Guard>> {
    if let Some(lease) = request.lease {
        check_lease("lease", lease)?;
    }
    let env = request.session.ctx.env.clone();
    let (begun, patience) = (env.now(), request.session.config.call_timeout);
    let wait = match request.patience {
        Patience::For(wait) if !wait.is_zero() => Some(wait),
        _ => None,
    };
    let progress = Arc::new(Progress::new(begun));
    let seen = progress.clone();
    let answered = answer_of(&*env, |answer| Acquisition::new(request, answer, progress, begun).run());
    // Whatever is under way when the time is over is undone by the task.
    seen.outcome(&*env, begun, wait, patience, answered).await
}

type Grant = Result<Option<Guard>>;

/// A reply that may still come; pending for ever once it has failed to.
type Reply = Fuse<BoxFuture<'static, Result<(Value, usize)>>>;

struct Acquisition {
    request: Request,
    owner: Arc<OwnerState>,
    /// Taken when the caller gets its answer, which can be before the work here is done.
    answer: Option<oneshot::Sender<Grant>>,
    progress: Arc<Progress>,
    end: Option<Monotonic>,
    /// The wait that a fair lock's queue was told.
    wait_ms: u64,
    /// A request that may have put the owner into the queue was sent.
    queued: bool,
    _under_way: Token,
}

/// What one request came to.
enum Outcome {
    Granted(Guard),
    Busy(Option<Duration>),
}

/// How a request ended whose reply did not come in time.
enum Resolved {
    Replied(Value, usize),
    /// The owner's count was looked at. When the request was granted: until when, by what is left of the lease.
    Counted {
        granted_until: Option<Boottime>,
    },
}

impl Acquisition {
    fn new(
        request: Request,
        answer: oneshot::Sender<Grant>,
        progress: Arc<Progress>,
        begun: Monotonic,
    ) -> Self {
        let owner = request.session.ctx.ledger.owner(&request.lock, &request.owner);
        let (end, wait) = match request.patience {
            Patience::For(wait) if !wait.is_zero() => (Some(begun + wait), wait),
            Patience::For(_) => (Some(begun), request.session.config.fair_wait_timeout),
            Patience::Once | Patience::Forever => (None, request.session.config.fair_wait_timeout),
        };
        let under_way = request.session.ctx.work.begin();
        Self {
            request,
            owner,
            answer: Some(answer),
            progress,
            end,
            wait_ms: millis(wait),
            queued: false,
            _under_way: under_way,
        }
    }

    fn env(&self) -> &dyn Env {
        self.request.session.env()
    }

    fn lease(&self) -> Duration {
        self.request.lease.unwrap_or(self.request.session.config.watchdog_timeout)
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            lock: &self.request.lock,
            owner: &self.request.owner,
            lease_ms: millis(self.lease()),
            wait_ms: self.wait_ms,
            now_ms: millis(self.env().wall().0),
        }
    }

    fn emit(&self, what: What<'_>) {
        self.request.session.ctx.emit(&self.request.lock, &self.request.owner, what);
    }

    async fn run(mut self) {
        if self.answer.as_ref().is_some_and(oneshot::Sender::is_closed) {
            return;
        }
        let work = self.request.session.ctx.work.clone();
        if work.is_closing() {
            self.give_answer(Err(Error::definite(ErrorKind::Shutdown)));
            return;
        }
        let outcome = match self.obtain().await {
            // It was not the caller who gave up.
            Ok(None) if work.is_closing() => Err(Error::definite(ErrorKind::Shutdown)),
            outcome => outcome,
        };
        if self.queued && !matches!(outcome, Ok(Some(_))) {
            let Request { session, protocol, lock, owner, .. } = &self.request;
            session.departures.leave(*protocol, lock, owner, self.wait_ms);
        }
        self.give_answer(outcome);
    }

    /// A guard that nobody receives is dropped and thereby released.
    fn give_answer(&mut self, outcome: Grant) {
        if let Some(answer) = self.answer.take() {
            drop(answer.send(outcome));
        }
    }

    fn time_is_up(&self) -> bool {
        self.end.is_some_and(|end| self.env().now() >= end)
    }

    /// Completes when the caller is no longer interested, its time is up, or the client is closed.
    async fn given_up(&mut self) {
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
                // The caller has its answer; what is left to do ends by itself.
                None => std::future::pending().await,
            }
        };
        let work = self.request.session.ctx.work.clone();
        tokio::select! {
            biased;
            () = gone => {}
            () = ended => {}
            () = work.closing() => {}
        }
    }

    async fn obtain(&mut self) -> Grant {
        if let Outcome::Granted(guard) = self.attempt().await? {
            return Ok(Some(guard));
        }
        if self.request.patience == Patience::Once || self.time_is_up() {
            return Ok(None);
        }
        let channel = self.request.protocol.channel(&self.request.lock, &self.request.owner);
        let subscription =
            Subscription::to(&self.request.session.hubs.of(self.request.lock.slot()), &channel);
        let patience = self.request.session.config.subscription_timeout;
        let env = self.request.session.ctx.env.clone();
        let confirmed = within(&*env, env.now() + patience, subscription.confirmed());
        tokio::select! {
            biased;
            confirmed = confirmed => match confirmed {
                Some(confirmed) => confirmed?,
                None => return Err(Error::definite(ErrorKind::SubscribeTimeout(patience))),
            },
            () = self.given_up() => return Ok(None),
        }
        let mut backoff = Backoff::default();
        loop {
            let epoch = subscription.epoch();
            if let Some(error) = subscription.refusal() {
                return Err(error);
            }
            let busy = match self.attempt().await? {
                Outcome::Granted(guard) => return Ok(Some(guard)),
                Outcome::Busy(ttl) => ttl,
            };
            subscription.looked();
            if self.time_is_up() {
                return Ok(None);
            }
            let sleep = self.at_most(backoff.sleep(busy, self.request.session.config.watchdog_timeout));
            self.emit(What::Waiting { at_most: Some(sleep) });
            let limit = env.now() + sleep;
            tokio::select! {
                biased;
                by = subscription.wait(epoch, limit) => self.emit(What::Woken { by }),
                () = self.given_up() => return Ok(None),
            }
        }
    }

    /// A place in a queue is kept by asking often enough, and no wait is so short that it is asked for without a pause.
    fn at_most(&self, sleep: Duration) -> Duration {
        if !self.request.protocol.queues() {
            return sleep;
        }
        sleep.min((Duration::from_millis(self.wait_ms) / 2).max(Backoff::FIRST))
    }

    /// Asks until there is an answer, or an error that repeating does not mend.
    async fn attempt(&mut self) -> Result<Outcome> {
        let mut repeats = 0;
        self.progress.asking(self.env().now());
        loop {
            self.emit(What::Attempt);
            let done = self.attempt_once().await;
            match &done {
                Ok(Outcome::Granted(_)) => {}
                Ok(Outcome::Busy(_)) => self.progress.refused(),
                Err(error) => self.progress.failed(error),
            }
            if self.answer.is_none() {
                // The caller was told that it failed; a guard that came of it all the same is released right here.
                return Err(done.err().unwrap_or_else(Error::shutdown));
            }
            let error = match done {
                Err(error) if error.is_transient() => error,
                done => return done,
            };
            if repeats == self.request.session.config.retry_attempts {
                return Err(error);
            }
            let delay = self.request.session.config.retry_delay(self.env(), repeats);
            let delayed = self.env().sleep_until(self.env().now() + delay);
            repeats += 1;
            tokio::select! {
                biased;
                () = delayed => {}
                () = self.given_up() => return Err(error),
            }
        }
    }

    async fn attempt_once(&mut self) -> Result<Outcome> {
        let (session, owner) = (self.request.session.clone(), self.owner.clone());
        let (config, node) = (&session.config, session.router.node(self.request.lock.slot()));
        // Until the outcome is known, no other request of this owner may change the count it is told by.
        let limit = session.env().now() + config.response_limit();
        let Some(_serial) = within(session.env(), limit, owner.serial.lock()).await else {
            return Err(config.no_reply().made_definite());
        };
        // One that is gone before its turn has come sends nothing.
        let _asks = tokio::select! {
            biased;
            () = self.given_up() => return Err(config.no_reply().made_definite()),
            permit = session.asks.acquire() => permit,
        };
        let connection = node.connection().await?;
        let wait =
            node.limited(&connection, node.replica_wait(&connection)).await.map_err(Error::made_definite)?;
        let needed = wait.as_ref().map_or(0, |(_, needed)| *needed);
        let once = self.request.patience == Patience::Once;
        let call = if once {
            self.request.protocol.try_acquire(&self.ask())
        } else {
            self.request.protocol.acquire(&self.ask())
        };
        if !once && self.request.protocol.queues() {
            session.departures.stay(&self.request.lock, &self.request.owner).await;
            self.queued = true;
        }
        self.progress.sent();

        let sent = session.env().boottime();
        let asked = connection.clone();
        let asking = async move { asked.run(&call, wait.as_ref().map(|(wait, _)| wait)).await };
        let mut reply: Reply = asking.boxed().fuse();
        let limit = session.env().now() + config.response_limit();
        let error = match within(session.env(), limit, &mut reply).await {
            Some(Ok((reply, acked))) => return self.settle(&reply, acked, needed, sent).await,
            Some(Err(error)) => {
                let error = node.retire_on(&connection, error);
                if error.is_definite() {
                    return Err(error);
                }
                error
            }
            None => node.retire_on(&connection, config.no_reply()),
        };
        self.resolve(connection, reply, needed, sent, error).await
    }

    /// The reply did not come: finds out what became of the request. The caller is told after a while, and a lock
    /// that turns out to be granted after that is given back.
    async fn resolve(
        &mut self,
        old: Arc<Connection>,
        mut reply: Reply,
        needed: usize,
        sent: Boottime,
        error: Error,
    ) -> Result<Outcome> {
        self.progress.failed(&error);
        let session = self.request.session.clone();
        let patience = session.env().now() + session.config.response_timeout;
        let mut resolved = within(session.env(), patience, self.find_out(&mut reply)).await;
        if resolved.is_none() {
            self.give_answer(Err(error.clone()));
            // What the request set, if it was obeyed before the connection was given up, has ended by then.
            let limit = session.env().now() + self.lease() + session.config.response_timeout;
            resolved = within(session.env(), limit, self.find_out(&mut reply)).await;
        }
        let is_fenced = old.is_fenced() || !error.is_lost_reply();
        drop((old, reply));
        match resolved {
            Some(Resolved::Replied(reply, acked)) => self.settle(&reply, acked, needed, sent).await,
            // Whether the replicas have it is not known, so that it does not count.
            Some(Resolved::Counted { granted_until: Some(_) })
                if session.config.replica_wait != ReplicaWait::None =>
            {
                Err(self.undone(error).await)
            }
            Some(Resolved::Counted { granted_until: Some(until) }) => match self.last_token().await {
                Ok(token) => self.accept(self.deadline(sent).min(until), token).await,
                Err(error) => Err(self.undone(error).await),
            },
            // Asking again is safe now: the first request cannot happen any more.
            Some(Resolved::Counted { granted_until: None }) if is_fenced => Err(error.made_definite()),
            // It may yet be obeyed, on a server that lets us end no connection. A second request could double it.
            Some(Resolved::Counted { granted_until: None }) => Err(error),
            None => Err(error),
        }
    }

    /// Waits for the late reply, and meanwhile tries to look at the count on a new connection.
    async fn find_out(&self, reply: &mut Reply) -> Resolved {
        let session = &self.request.session;
        let counted = async {
            let mut repeats = 0;
            loop {
                if let Ok(granted_until) = self.count_on_new_connection().await {
                    return granted_until;
                }
                pause(session.env(), session.config.retry_delay(session.env(), repeats)).await;
                repeats += 1;
            }
        };
        tokio::select! {
            biased;
            Ok((reply, acked)) = reply => Resolved::Replied(reply, acked),
            granted_until = counted => Resolved::Counted { granted_until },
        }
    }

    /// Compares the owner's count with the holds known here, on a connection before which the old one was ended. When
    /// there is one more: until when, by what is left of the key's time to live.
    async fn count_on_new_connection(&self) -> Result<Option<Boottime>> {
        let node = self.request.session.router.node(self.request.lock.slot());
        let connection = node.connection().await?;
        let mut count = redis::cmd("HGET");
        count.arg(&*self.request.lock).arg(&self.request.owner);
        let count: usize = match node.limited(&connection, connection.call(&count)).await? {
            Value::Nil => 0,
            Value::BulkString(count) => {
                std::str::from_utf8(&count).ok().and_then(|n| n.parse().ok()).unwrap_or(0)
            }
            other => return Err(Error::unexpected(&other)),
        };
        if count <= self.owner.count() {
            return Ok(None);
        }
        let sent = self.env().boottime();
        let mut left = redis::cmd("PTTL");
        left.arg(&*self.request.lock);
        match node.limited(&connection, connection.call(&left)).await? {
            Value::Int(left) => {
                let left = remaining(left).unwrap_or_default();
                Ok(Some(sent + left.saturating_sub(drift_margin(left))))
            }
            other => Err(Error::unexpected(&other)),
        }
    }

    async fn last_token(&self) -> Result<Option<u64>> {
        let Some(key) = self.request.protocol.token_key(&self.request.lock) else { return Ok(None) };
        match self.request.session.router.ask(self.request.lock.slot(), redis::cmd("GET").arg(key)).await? {
            Value::BulkString(token) => Ok(std::str::from_utf8(&token).ok().and_then(|n| n.parse().ok())),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// Makes a reply an outcome.
    async fn settle(
        &mut self,
        reply: &Value,
        acked: usize,
        needed: usize,
        sent: Boottime,
    ) -> Result<Outcome> {
        match self.request.protocol.answer(reply)? {
            Answer::Busy(ttl) => Ok(Outcome::Busy(ttl)),
            Answer::Granted { token } => {
                if let Err(error) =
                    self.request.session.router.node(self.request.lock.slot()).acknowledged(acked, needed)
                {
                    return Err(self.undone(error).await);
                }
                self.accept(self.deadline(sent), token).await
            }
        }
    }

    /// Makes a grant a guard, unless its lease is over already: the reply was long under way, or this process stood
    /// still.
    async fn accept(&self, deadline: Boottime, token: Option<u64>) -> Result<Outcome> {
        // A caller that has gone would have its guard dropped and released in its own time; the owner's next request must not
        // find that level still counted.
        let gone = self.answer.as_ref().is_none_or(oneshot::Sender::is_closed);
        if gone || self.env().boottime() >= deadline {
            self.undo().await;
            return Ok(Outcome::Busy(Some(Duration::ZERO)));
        }
        Ok(Outcome::Granted(self.grant(deadline, token)))
    }

    /// Until when a lease counts that a request sent at `sent` was granted. The server's lease began later, so that
    /// this is on the safe side.
    fn deadline(&self, sent: Boottime) -> Boottime {
        sent + self.lease().saturating_sub(drift_margin(self.lease()))
    }

    fn grant(&self, deadline: Boottime, token: Option<u64>) -> Guard {
        let session = &self.request.session;
        let held =
            Held { session: session.clone(), protocol: self.request.protocol, owner: self.owner.clone() };
        let renewed = self.request.lease.is_none();
        let grant = NewHold { deadline, lease: self.lease(), renewed, token };
        let hold =
            Hold::granted(session.ctx.clone(), &self.owner, &self.request.owner, Arc::new(held), grant);
        if renewed {
            session.watchdog.watch(&hold, Renewal::Script(&HASHES));
        }
        Guard::new(hold, token, session.ctx.env.clone())
    }

    /// Takes a grant back that does not count. If that fails as well, the lock ends with its lease.
    async fn undo(&self) -> bool {
        let Request { session, protocol, .. } = &self.request;
        give_back(session, *protocol, &self.owner, Confirm::No).await.is_ok()
    }

    /// As [`Acquisition::undo`]; `error`, which is why, is definite when that worked.
    async fn undone(&self, error: Error) -> Error {
        if self.undo().await { error.made_definite() } else { error }
    }
}

/// Decides how long a waiter sleeps before it asks again unbidden.
#[derive(Default)]
struct Backoff {
    idle: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LAST: Duration = Duration::from_secs(1);

    /// `ttl` is what the holder has left, `None` for a key that never expires.
    fn sleep(&mut self, ttl: Option<Duration>, unknown: Duration) -> Duration {
        match ttl {
            // Free, but somebody else's turn, who may be dead: look now and then instead of without pause.
            Some(Duration::ZERO) => {
                let sleep = Self::FIRST.saturating_mul(1 << self.idle.min(10)).min(Self::LAST);
                self.idle += 1;
                sleep
            }
            // Redis expires a key when its time is past, not when it is reached.
            Some(ttl) => {
                self.idle = 0;
                ttl + Duration::from_millis(1)
            }
            None => unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis expires a key when its time is past: who asks at the very millisecond finds it, with 0 ms left, takes that for
    /// another's turn, and comes again after 50 ms.
    #[test]
    fn a_waiter_sleeps_until_the_lease_is_past() {
        let (ms, unknown) = (Duration::from_millis, Duration::from_secs(30));
        let mut backoff = Backoff::default();
        for (ttl, sleep) in [
            (Some(ms(100)), ms(101)),
            (Some(ms(0)), ms(50)),
            (Some(ms(0)), ms(100)),
            (Some(ms(1)), ms(2)),
            (Some(ms(0)), ms(50)),
            (None, unknown),
        ] {
            assert_eq!(backoff.sleep(ttl, unknown), sleep, "{ttl:?}");
        }
    }
}
