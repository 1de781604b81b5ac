//! Acquires a lock on one master: sends one request at a time, and makes a guard of a grant.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::attempt::{Answer, Ask, Found, Kind, Sleep};
use crate::config::{PERMIT_MEMORY, PERMIT_PATIENCE, millis};
use crate::env::{Boottime, Env, within};
use crate::error::{Error, ErrorKind, Result};
use crate::explain::{explained, explained_alone};
use crate::guard::{Got, Guard};
use crate::hold::{Grant, Hold, Keeper, Known, OwnerState, Told};
use crate::keeper::{Held, give_back};
use crate::key::Key;
use crate::limits::LEASE;
use crate::observer::EventKind;
use crate::recover::{Pending, Probe, Recovered, Replied};
use crate::renew::Renewal;
use crate::route::Confirm;
use crate::session::Session;
use crate::spin::Spins;
use crate::wait::{Caller, WaitLimit, Wanted, wait};
use crate::wake::{HeldBack, Subscription};
use crate::wire::{Slot, drift_margin};

/// A request for a lock, from the call of the application until it is granted or given up.
pub(crate) struct Acquisition<G: 'static> {
    session: Arc<Session>,
    kind: Arc<dyn Kind<Got = G>>,
    key: Key,
    /// The owner's field in Redis.
    field: String,
    owner: Arc<OwnerState>,
    /// `None`: the watchdog renews the lease, for kinds that have a renewal.
    fixed_lease: Option<Duration>,
    limit: WaitLimit,
    /// The wait in ms with which the owner is queued, for kinds that have a queue.
    wait_ms: u64,
    /// The time at which the last request was sent.
    sent: Boottime,
    /// Set once a request was sent that may have put the owner into the queue.
    queued: bool,
    backoff: Backoff,
    spins: Spins,
}

impl<G: Got> Acquisition<G> {
    /// Makes a request of the owner with this field. Without a lease the watchdog renews the grant,
    /// for kinds that have a renewal.
    ///
    /// # Errors
    /// If the lease is not in its range.
    pub(crate) fn new(
        session: Arc<Session>,
        kind: Arc<dyn Kind<Got = G>>,
        key: Key,
        field: String,
        lease: Option<Duration>,
        limit: WaitLimit,
    ) -> Result<Self> {
        if let Some(lease) = lease {
            LEASE.check(lease)?;
        }
        let owner = session.ctx.ledger.owner(&key, &field);
        let wait = match limit {
            WaitLimit::For(wait) if !wait.is_zero() => wait,
            _ => session.config.fair_wait_timeout,
        };
        Ok(Self {
            session,
            kind,
            key,
            field,
            owner,
            fixed_lease: lease,
            limit,
            wait_ms: millis(wait),
            sent: Boottime(Duration::ZERO),
            queued: false,
            backoff: Backoff::default(),
            spins: Spins::default(),
        })
    }

    /// Acquires the lock. Returns `None` if the caller's time ends first.
    pub(crate) async fn acquire(self) -> Result<Option<Guard<G>>> {
        let (session, limit) = (self.session.clone(), self.limit);
        wait(&session, limit, self).await
    }

    /// Makes a guard for a level that the owner has on the server and that no guard of this client
    /// represents. The watchdog renews it from then on. The lease is set to the watchdog's unless
    /// the rest is longer.
    pub(crate) async fn adopt(mut self) -> Result<Guard<G>> {
        let (session, owner) = (self.session.clone(), self.owner.clone());
        if session.ctx.work.is_closing() {
            return Err(Error::definite(ErrorKind::Closed));
        }
        let (kind, key, field) = (self.kind.clone(), self.key.clone(), self.field.clone());
        let not_held = || Error::definite(ErrorKind::NotHeld { lock: key.to_string(), owner: field.clone() });
        let Some(renewal) = kind.renewal() else { return Err(not_held()) };
        let limit = session.env().now() + session.config.call_timeout;
        let Some(_serial) = within(session.env(), limit, pin!(owner.serial.lock())).await else {
            return Err(session.config.no_reply().made_definite());
        };
        // Exclude every level that this client may have: only a level beyond them can be adopted.
        let mut levels = owner.levels(&kind.parts(), session.env().boottime());
        levels.iter_mut().for_each(|levels| levels.least = levels.most);
        let mut answers = Vec::new();
        for question in kind.probe(&self.request()) {
            answers.push(session.router.ask(key.slot(), &question).await?);
        }
        let known = Known { levels, old_left: Duration::ZERO, new_left: Duration::ZERO };
        let Told::Obeyed(Found { got, .. }) = kind.found(&answers, &known)? else {
            return Err(not_held());
        };
        self.sent = session.env().boottime();
        owner.may_last(self.sent, session.config.call_timeout, self.lease());
        let call = renewal.call_one(self.lease(), &key, &field, &kind.parts());
        let reply = session.router.run_repeatable(&call).await?;
        if !renewal.read_one(&reply)? {
            return Err(not_held());
        }
        Ok(self.grant(self.deadline(), got))
    }

    fn env(&self) -> &dyn Env {
        self.session.env()
    }

    fn lease(&self) -> Duration {
        if self.is_endless() {
            return Duration::MAX;
        }
        self.fixed_lease.unwrap_or(self.session.config.watchdog_timeout)
    }

    /// Returns true if, as far as this client knows, the owner can have no level.
    fn has_nothing(&self) -> bool {
        let levels = self.owner.levels(&self.kind.parts(), self.env().boottime());
        levels.iter().all(|levels| levels.most == 0)
    }

    /// Returns true if grants of this kind never expire.
    fn is_endless(&self) -> bool {
        self.kind.renewal().is_none()
    }

    /// Returns the time for which the outcome of a request is worth finding out: until the grant
    /// expires or the server has forgotten the request.
    fn patience(&self) -> Duration {
        if self.is_endless() { PERMIT_PATIENCE } else { self.lease() }
    }

    fn request(&self) -> Ask<'_> {
        Ask {
            key: &self.key,
            owner: &self.field,
            lease_ms: millis(self.lease()),
            waits: self.limit != WaitLimit::NoWait,
            wait_ms: self.wait_ms,
            now_ms: millis(self.env().wall().0),
            memory_ms: millis(PERMIT_MEMORY),
            publish: self.session.router.publish(),
        }
    }

    /// Converts a reply to an answer.
    async fn settle(&self, caller: &Caller<Guard<G>>, replied: Replied) -> Result<Answer<Guard<G>>> {
        match self.kind.read(&replied.value)? {
            Answer::Busy(busy) => Ok(Answer::Busy(busy)),
            Answer::Got(got) => {
                if let Err(error) = replied.confirmed() {
                    // Record the error first: the caller's time may end before the grant is undone.
                    caller.progress.failed(&error);
                    return Err(Box::pin(self.undone(error)).await);
                }
                self.accept(caller, self.deadline(), got).await
            }
        }
    }

    /// Makes a guard of a grant. If the lease is already over, because the reply took long or this
    /// process was paused, undoes the grant.
    async fn accept(
        &self,
        caller: &Caller<Guard<G>>,
        deadline: Boottime,
        got: G,
    ) -> Result<Answer<Guard<G>>> {
        // If the caller is gone, undo the grant here. A dropped guard would be released later, and
        // the owner's next request must not still count that level.
        if caller.is_gone() || self.env().boottime() >= deadline {
            // Boxed because it is rare and its future is large: it must not enlarge every
            // acquisition.
            Box::pin(self.undo()).await;
            return Ok(Answer::Busy(Sleep::Left(Duration::ZERO)));
        }
        Ok(Answer::Got(self.grant(deadline, got)))
    }

    /// Returns the end of the lease, if the request is granted. It is a safe bound: the lease began
    /// on the server after the request was sent.
    fn deadline(&self) -> Boottime {
        self.sent + self.lease().saturating_sub(drift_margin(self.lease()))
    }

    fn grant(&self, deadline: Boottime, got: G) -> Guard<G> {
        self.may_have_been_obeyed();
        let Self { session, kind, .. } = self;
        let held = Held { session: session.clone(), kind: kind.clone(), owner: self.owner.clone() };
        let keeper: Arc<dyn Keeper> = Arc::new(held);
        let renewal = kind.renewal().filter(|_| self.fixed_lease.is_none());
        let grant = Grant {
            deadline,
            lease: self.lease(),
            renewed: renewal.is_some(),
            token: got.token(),
            parts: kind.parts(),
        };
        let hold = Hold::granted(session.ctx.clone(), &self.owner, &self.field, &keeper, grant);
        if let Some(renewal) = renewal {
            session.watchdog.watch(&hold, Renewal::Script(renewal));
        }
        Guard::new(hold, keeper, got, session.ctx.env.clone())
    }

    /// Finds out the outcome of a request whose reply was lost with `error`.
    async fn resolve(
        &self,
        caller: &mut Caller<Guard<G>>,
        pending: Pending,
        error: Error,
    ) -> Result<Answer<Guard<G>>> {
        let (session, kind) = (&self.session, &self.kind);
        let probe = Probe {
            slot: self.key.slot(),
            questions: kind.probe(&self.request()),
            read: |answers: &[Value], asked: Boottime| {
                let now = session.env().boottime();
                // A machine that was suspended asks late. The server may have executed the request
                // and forgotten it since.
                if self.is_endless() && now >= self.sent + PERMIT_MEMORY {
                    return Err(session.config.no_reply());
                }
                let known = Known {
                    levels: self.owner.levels(&kind.parts(), asked),
                    old_left: self.owner.lasts_until() - asked,
                    new_left: self.deadline() - now,
                };
                kind.found(answers, &known)
            },
        };
        match pending.recover(session, caller, &error, self.patience(), probe).await {
            Recovered::Replied(replied) => self.settle(caller, replied).await,
            // It is not known if the replicas and disks have the grant, so it does not count.
            Recovered::Obeyed(..) if session.config.confirms() => Err(self.undone(error).await),
            Recovered::Obeyed(Found { got, left }, asked) => {
                let until = asked + left.saturating_sub(drift_margin(left));
                self.accept(caller, self.deadline().min(until), got).await
            }
            Recovered::Never => Err(error.made_definite()),
            // The owner had nothing before, so anything that it has now is this grant.
            Recovered::Untold { is_fenced } if self.has_nothing() && !self.is_endless() => {
                let undone = self.undone(error.clone()).await;
                Err(if is_fenced { undone } else { error })
            }
            // A second request could double the first.
            Recovered::Unknown | Recovered::Untold { .. } => Err(error),
        }
    }

    /// Undoes a grant that does not count. If that fails as well, the lock ends with its lease.
    async fn undo(&self) -> bool {
        self.may_have_been_obeyed();
        let lasts = self.deadline();
        let Self { session, kind, .. } = self;
        give_back(session, &**kind, &self.owner, Confirm::No, lasts).await.is_ok()
    }

    /// Records that the request may have extended the owner's older levels, whatever its outcome.
    fn may_have_been_obeyed(&self) {
        let patience = self.env().boottime() - self.sent;
        self.owner.may_last(self.sent, patience, self.lease());
    }

    /// Adds the missing right to `error`, a refusal of the request, if the user lacks one.
    async fn explained(&self, error: Error) -> Error {
        let Self { session, kind, key, .. } = self;
        let call = kind.call(&self.request());
        explained(session, kind.rights(), key, &call.keys(), error).await
    }

    /// As [`Acquisition::undo`]. Returns `error`, the reason, and makes it definite if the undo
    /// succeeded.
    async fn undone(&self, error: Error) -> Error {
        if self.undo().await { error.made_definite() } else { error }
    }
}

impl<G: Got> Wanted for Acquisition<G> {
    type Got = Guard<G>;

    async fn ask(&mut self, caller: &mut Caller<Guard<G>>) -> Result<Answer<Guard<G>>> {
        self.emit(EventKind::Attempt);
        let (session, owner, kind) = (self.session.clone(), self.owner.clone(), self.kind.clone());
        let config = &session.config;
        // Until the outcome is known, no other request of this owner may change the level count by
        // which a probe decides.
        let limit = session.env().now() + config.response_limit();
        let Some(_serial) = within(session.env(), limit, pin!(owner.serial.lock())).await else {
            return Err(owner.trouble.last().unwrap_or_else(|| config.no_reply()).made_definite());
        };
        let _turn = caller.turn(&session).await?;
        if kind.refuses_holder() && owner.holds().iter().any(|hold| hold.is_valid()) {
            return Err(Error::definite(ErrorKind::AlreadyHeld));
        }
        // The call may depend on the servers, for example on their publish command.
        session.router.ready().await?;
        let call = kind.call(&self.request());
        let path = session.router.path_of(&call).await?;
        let confirmation = path.confirmation().await.map_err(Error::made_definite)?;
        if self.limit != WaitLimit::NoWait && kind.abandon().is_some() {
            session.queue_leave.stay(&self.key, &self.field).await;
            self.queued = true;
        }
        caller.progress.sent();

        self.sent = session.env().boottime();
        let mut pending = Pending::send(&session, path, call, confirmation);
        let answer = match pending.reply().await {
            Ok(replied) => self.settle(caller, replied).await,
            // Boxed because it is as rare as an undo.
            Err(error) if error.is_definite() => return Err(Box::pin(self.explained(error)).await),
            Err(error) => Box::pin(self.resolve(caller, pending, error)).await,
        };
        if answer.is_err() {
            self.may_have_been_obeyed();
        }
        answer
    }

    fn listen(&self) -> Option<Subscription> {
        let Self { session, kind, key, field, .. } = self;
        Some(Subscription::to(&session.hub, kind.wakes(key, field)?, key.slot(), kind.wants_several()))
    }

    fn held_back(&self) -> Option<HeldBack> {
        let hub = &self.session.hub;
        // An owner that has a level gets another one before all others.
        if !hub.knows_others() || !self.has_nothing() {
            return None;
        }
        let wakes = self.kind.wakes(&self.key, &self.field).filter(|wakes| wakes.in_turns)?;
        hub.held_back(&wakes.channel)
    }

    fn sleep(&mut self, busy: Sleep) -> Duration {
        if let Some(backoff) = self.kind.spin_backoff() {
            return self.spins.next(backoff, self.session.env());
        }
        let sleep = self.backoff.sleep(busy, self.session.config.watchdog_timeout);
        if self.kind.abandon().is_none() {
            return sleep;
        }
        // The waiter keeps its place in the queue by asking often enough. A very short wait must
        // still not make it ask without a pause.
        sleep.min((Duration::from_millis(self.wait_ms) / 2).max(Backoff::FIRST))
    }

    fn repeat_delay(&self, repeats: u32) -> Option<Duration> {
        let config = &self.session.config;
        config.may_repeat(repeats).then(|| config.retry_delay(self.env(), repeats))
    }

    fn slot(&self) -> Option<Slot> {
        Some(self.key.slot())
    }

    fn emit(&self, kind: EventKind<'_>) {
        self.session.ctx.emit(&self.key, &self.field, kind);
    }

    fn explained(&self, refusal: Error) -> Error {
        let Self { kind, key, .. } = self;
        explained_alone(kind.rights(), key, refusal)
    }

    fn give_up(&mut self) {
        let Self { session, kind, key, field, .. } = &*self;
        if let (true, Some(abandon)) = (self.queued, kind.abandon()) {
            session.queue_leave.leave(abandon, key, field, self.wait_ms);
        }
    }
}

/// Decides how long a waiter sleeps before it asks again without a message.
#[derive(Default)]
struct Backoff {
    idle: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LAST: Duration = Duration::from_secs(1);

    fn sleep(&mut self, busy: Sleep, unknown: Duration) -> Duration {
        match busy {
            // The lock is free, but it is the turn of another waiter, which may be dead. Poll with
            // a growing delay.
            Sleep::Left(Duration::ZERO) => {
                let sleep = Self::FIRST.saturating_mul(1 << self.idle.min(10)).min(Self::LAST);
                self.idle += 1;
                sleep
            }
            // Redis expires a key only after its time has passed, so sleep 1 ms longer.
            Sleep::Left(left) => {
                self.idle = 0;
                left + Duration::from_millis(1)
            }
            Sleep::Unknown => unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis expires a key after its time has passed. A waiter that asks in that very millisecond
    /// sees the key with 0 ms left. It takes that for another waiter's turn and sleeps 50 ms.
    #[test]
    fn a_waiter_sleeps_until_the_lease_is_past() {
        let (ms, unknown) = (Duration::from_millis, Duration::from_secs(30));
        let left = |left| Sleep::Left(ms(left));
        let mut backoff = Backoff::default();
        for (busy, sleep) in [
            (left(100), ms(101)),
            (left(0), ms(50)),
            (left(0), ms(100)),
            (left(1), ms(2)),
            (left(0), ms(50)),
            (Sleep::Unknown, unknown),
        ] {
            assert_eq!(backoff.sleep(busy, unknown), sleep, "{busy:?}");
        }
    }
}
