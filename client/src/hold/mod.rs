//! One granted lock as this client believes it: until when, and whether it is known to be lost; and
//! the one ledger of all holds of a client.

mod ledger;
mod levels;
mod parts;
#[cfg(test)]
pub(crate) mod tests;

use std::any::Any;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::env::{Boottime, Env, within};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::mutex::locked;
use crate::observer::{Event, EventKind, LossCause, Observer};
use crate::wire::drift_margin;
use crate::work::{Token, Work};
pub(crate) use ledger::{Ledger, OwnerState};
pub(crate) use levels::{Known, Levels, Told};
pub(crate) use parts::Parts;

/// How late a waiter may notice that a suspended machine is awake again: tokio's timers stand still
/// meanwhile.
const RESUME_CHECK: Duration = Duration::from_secs(1);

/// What every hold needs to know of its client.
#[derive(Clone)]
pub(crate) struct ClientContext {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) work: Arc<Work>,
    /// How long the caller of one operation waits for its outcome.
    pub(crate) call_timeout: Duration,
}

impl ClientContext {
    pub(crate) fn emit(&self, lock: &str, owner: &str, kind: EventKind<'_>) {
        self.observer.observe(&Event { lock, owner, at: self.env.boottime(), kind });
    }
}

/// How a hold is extended and given back: the kind of lock that granted it.
pub(crate) trait Keeper: Any + Send + Sync {
    /// Gives one level back, and emits what came of it.
    fn release(self: Arc<Self>, hold: Arc<Hold>) -> BoxFuture<'static, Result<()>>;

    /// The error of a release that is under way still after `time`: what its last try has come to.
    fn overdue(&self, time: Duration) -> Error;

    /// Extends the lease of `hold`, and of the levels that share it, to `lease` from now. Settles
    /// that they are lost when the servers say so.
    fn extend(self: Arc<Self>, hold: Arc<Hold>, lease: Duration) -> BoxFuture<'static, Result<()>>;

    /// `hold` is not given back, and ends with its lease. What is left to do for that, of kinds
    /// that would give it back by themselves.
    fn forget(self: Arc<Self>, _hold: Arc<Hold>) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// What was granted.
pub(crate) struct Grant {
    /// Until when it counts by this client's clock.
    pub(crate) deadline: Boottime,
    /// The lease that was asked for.
    pub(crate) lease: Duration,
    /// The watchdog renews it.
    pub(crate) renewed: bool,
    /// The fencing token, of locks that have one.
    pub(crate) token: Option<u64>,
    /// What of the key was granted.
    pub(crate) parts: Parts,
}

/// A granted lock, shared by the guard and the futures that await its loss.
pub(crate) struct Hold {
    ctx: ClientContext,
    pub(crate) number: u64,
    pub(crate) key: Key,
    /// The owner as Redis knows it.
    pub(crate) owner: String,
    pub(crate) lease: Duration,
    renewed: bool,
    /// Where it is counted.
    pub(crate) of: Arc<OwnerState>,
    /// Of the guard. A future that awaits the loss must not keep the client alive.
    keeper: Weak<dyn Keeper>,
    pub(crate) granted: Boottime,
    /// What of the key it is of.
    pub(crate) parts: Parts,
    /// For each part the first hold of those that were granted one inside the other, so that the
    /// part has been held since: its number.
    outermost: Vec<u64>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    deadline: Boottime,
    lost: Option<LossCause>,
    released: bool,
    /// While the release is under way.
    releasing: Option<Token>,
}

impl Hold {
    /// A grant to the owner `of`, which Redis knows as `owner`.
    pub(crate) fn granted(
        ctx: ClientContext,
        of: &Arc<OwnerState>,
        owner: &str,
        keeper: &Arc<dyn Keeper>,
        grant: Grant,
    ) -> Arc<Self> {
        let Grant { deadline, lease, renewed, token, parts } = grant;
        let number = ctx.ledger.next_number();
        ctx.emit(&of.key, owner, EventKind::Acquired { hold: number, lease, deadline, token });
        let hold = Arc::new(Self {
            number,
            key: of.key.clone(),
            owner: owner.to_owned(),
            lease,
            renewed,
            of: of.clone(),
            keeper: Arc::downgrade(keeper),
            granted: ctx.env.boottime(),
            outermost: parts.iter().map(|part| of.outermost(part).unwrap_or(number)).collect(),
            parts,
            ctx,
            state: Mutex::new(State { deadline, lost: None, released: false, releasing: None }),
            changed: Notify::new(),
        });
        of.add(&hold);
        hold
    }

    /// The first hold of those that this one was granted inside of at a part; `None` when it is not
    /// of that part.
    pub(crate) fn outermost(&self, part: &str) -> Option<u64> {
        self.outermost.get(self.parts.position(part)?).copied()
    }

    /// Begins to give it back, unless that was done before.
    fn give_back(self: &Arc<Self>) -> Option<BoxFuture<'static, Result<()>>> {
        let keeper = self.keeper()?;
        self.releasing().then(|| keeper.release(self.clone()))
    }

    /// What extends and releases it, while its guard is there.
    pub(crate) fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        self.keeper.upgrade()
    }

    /// Whether the watchdog is to renew it: it was granted without a lease of its own, and is
    /// neither lost nor given back.
    pub(crate) fn is_renewed(&self) -> bool {
        let state = locked(&self.state);
        self.renewed && state.lost.is_none() && !state.released
    }

    fn emit(&self, kind: EventKind<'_>) {
        self.ctx.emit(&self.key, &self.owner, kind);
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.ctx.call_timeout
    }

    /// The time left, zero when the hold is lost or released.
    pub(crate) fn validity(&self) -> Duration {
        let state = locked(&self.state);
        if state.lost.is_some() || state.released {
            return Duration::ZERO;
        }
        state.deadline - self.ctx.env.boottime()
    }

    /// Whether the server must have the key still, given back or not: the hold is not lost, and its
    /// lease is not over.
    pub(crate) fn keeps_the_key(&self) -> bool {
        let state = locked(&self.state);
        state.lost.is_none() && state.deadline > self.ctx.env.boottime()
    }

    /// True while the client may believe in the lock. The first look after the deadline settles
    /// that it is lost.
    pub(crate) fn is_valid(&self) -> bool {
        if self.validity() > Duration::ZERO {
            return true;
        }
        self.lose(LossCause::Expired);
        false
    }

    /// Why the hold is lost, if it is.
    pub(crate) fn why_lost(&self) -> Option<LossCause> {
        locked(&self.state).lost
    }

    /// A renewal sent at `sent` succeeded. Never shortens the hold, and does not bring a lost one
    /// back.
    pub(crate) fn renewed(&self, sent: Boottime, lease: Duration) {
        self.renewed_until(sent + lease.saturating_sub(drift_margin(lease)));
    }

    /// As [`Hold::renewed`], with the deadline already known.
    pub(crate) fn renewed_until(&self, until: Boottime) {
        if !self.is_valid() {
            return;
        }
        let deadline = {
            let mut state = locked(&self.state);
            state.deadline = state.deadline.max(until);
            state.deadline
        };
        self.emit(EventKind::Renewed { hold: self.number, deadline });
    }

    pub(crate) fn renew_failed(&self, error: &Error) {
        self.emit(EventKind::RenewFailed { hold: self.number, error });
    }

    /// Settles that the lock is lost; the first reason stays.
    pub(crate) fn lose(&self, why: LossCause) {
        {
            let mut state = locked(&self.state);
            if state.lost.is_some() || state.released {
                return;
            }
            state.lost = Some(why);
        }
        self.emit(EventKind::Lost { hold: self.number, why });
        self.changed.notify_waiters();
    }

    /// The application gives the lock back: its belief ends here. False when it has done so before.
    pub(crate) fn releasing(&self) -> bool {
        // A lease that ran out unnoticed is a loss, not a release.
        self.is_valid();
        {
            let mut state = locked(&self.state);
            if state.released {
                return false;
            }
            state.released = true;
            state.releasing = Some(self.ctx.work.begin());
        }
        self.of.ledger().release_begins(self);
        self.emit(EventKind::Releasing { hold: self.number });
        self.changed.notify_waiters();
        true
    }

    /// The application hands the hold over to another user, who gives it back.
    pub(crate) fn forget(&self) {
        self.is_valid();
        if std::mem::replace(&mut locked(&self.state).released, true) {
            return;
        }
        self.of.remove(self.number);
        self.emit(EventKind::Releasing { hold: self.number });
        self.changed.notify_waiters();
    }

    pub(crate) fn released(&self, error: Option<&Error>) {
        let failed = error.is_some_and(|error| !matches!(error.kind(), ErrorKind::NotHeld { .. }));
        self.of.ledger().release_ends(self, failed && self.ctx.work.is_closing());
        let under_way = locked(&self.state).releasing.take();
        drop(under_way);
        self.emit(EventKind::Released { hold: self.number, error });
    }

    /// Completes when the hold is lost; never when it is released.
    pub(crate) async fn lost(&self) -> LossCause {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(why) = self.why_lost() {
                return why;
            }
            let left = self.validity();
            let env = &*self.ctx.env;
            if locked(&self.state).released {
                changed.await;
            } else if left.is_zero() {
                self.lose(LossCause::Expired);
            } else {
                within(env, env.now() + left.min(RESUME_CHECK), changed).await;
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.of.remove(self.number);
    }
}
