//! Granted locks as the client believes in them: the deadline of each, the loss of it, and the
//! ledger of all holds.

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

/// The maximum delay until a task notices that a suspended machine has resumed: tokio's timers stop
/// during the suspend.
const RESUME_CHECK: Duration = Duration::from_secs(1);

/// The parts of a client that every hold uses.
#[derive(Clone)]
pub(crate) struct ClientContext {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) work: Arc<Work>,
    /// The time that the caller of one operation waits for its outcome.
    pub(crate) call_timeout: Duration,
}

impl ClientContext {
    pub(crate) fn emit(&self, lock: &str, owner: &str, kind: EventKind<'_>) {
        self.observer.observe(&Event { lock, owner, at: self.env.boottime(), kind });
    }
}

/// Extends and releases holds; implemented by the kind of lock.
pub(crate) trait Keeper: Any + Send + Sync {
    /// Releases one level, and emits the outcome.
    fn release(self: Arc<Self>, hold: Arc<Hold>) -> BoxFuture<'static, Result<()>>;

    /// Returns the error of a release that is still under way after `time`: the error of its last
    /// attempt.
    fn overdue(&self, time: Duration) -> Error;

    /// Extends the lease of `hold`, and of the levels that share it, to `lease` from now. Marks
    /// them as lost if the servers say so.
    fn extend(self: Arc<Self>, hold: Arc<Hold>, lease: Duration) -> BoxFuture<'static, Result<()>>;

    /// Lets `hold` end with its lease instead of releasing it. Returns the work that this takes,
    /// for kinds that would otherwise release it by themselves.
    fn forget(self: Arc<Self>, _hold: Arc<Hold>) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The terms of a grant.
pub(crate) struct Grant {
    /// The end of the client's belief in the grant, by its own clock.
    pub(crate) deadline: Boottime,
    /// The requested lease.
    pub(crate) lease: Duration,
    /// True if the watchdog renews it.
    pub(crate) renewed: bool,
    /// The fencing token, if the lock has one.
    pub(crate) token: Option<u64>,
    /// The parts of the key that were granted.
    pub(crate) parts: Parts,
}

/// A granted lock, shared by the guard and the futures that await its loss.
pub(crate) struct Hold {
    ctx: ClientContext,
    pub(crate) number: u64,
    pub(crate) key: Key,
    /// The owner field in Redis.
    pub(crate) owner: String,
    pub(crate) lease: Duration,
    renewed: bool,
    /// The owner whose levels include this hold.
    pub(crate) of: Arc<OwnerState>,
    /// Weak, because a future that awaits the loss must not keep the client alive. The guard owns
    /// it.
    keeper: Weak<dyn Keeper>,
    pub(crate) granted: Boottime,
    /// The parts of the key that this hold covers.
    pub(crate) parts: Parts,
    /// For each part the number of the first hold in the nesting, since whose grant the part has
    /// been held.
    outermost: Vec<u64>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    deadline: Boottime,
    lost: Option<LossCause>,
    released: bool,
    /// Set while the release is under way.
    releasing: Option<Token>,
}

impl Hold {
    /// Records a grant to the owner `of`, whose field in Redis is `owner`.
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

    /// Returns the number of the first hold in the nesting at a part; `None` if this hold does not
    /// cover the part.
    pub(crate) fn outermost(&self, part: &str) -> Option<u64> {
        self.outermost.get(self.parts.position(part)?).copied()
    }

    /// Begins the release, unless it has begun already.
    fn give_back(self: &Arc<Self>) -> Option<BoxFuture<'static, Result<()>>> {
        let keeper = self.keeper()?;
        self.releasing().then(|| keeper.release(self.clone()))
    }

    /// Returns the keeper, which extends and releases the hold, while a guard exists.
    pub(crate) fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        self.keeper.upgrade()
    }

    /// Returns true if the watchdog has to renew the hold: it was granted without a lease of its
    /// own, and is neither lost nor released.
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

    /// Returns the rest of the belief; zero if the hold is lost or released.
    pub(crate) fn validity(&self) -> Duration {
        let state = locked(&self.state);
        if state.lost.is_some() || state.released {
            return Duration::ZERO;
        }
        state.deadline - self.ctx.env.boottime()
    }

    /// Returns true if the server must still have the key, even if this level was released: the
    /// hold is not lost and its lease has not ended.
    pub(crate) fn keeps_the_key(&self) -> bool {
        let state = locked(&self.state);
        state.lost.is_none() && state.deadline > self.ctx.env.boottime()
    }

    /// Returns true while the client may believe in the lock. The first call after the deadline
    /// marks the hold as lost.
    pub(crate) fn is_valid(&self) -> bool {
        if self.validity() > Duration::ZERO {
            return true;
        }
        self.lose(LossCause::Expired);
        false
    }

    /// Returns the cause of the loss, if the hold is lost.
    pub(crate) fn why_lost(&self) -> Option<LossCause> {
        locked(&self.state).lost
    }

    /// Records the success of a renewal sent at `sent`. Never shortens the hold, and does not bring
    /// back a lost one.
    pub(crate) fn renewed(&self, sent: Boottime, lease: Duration) {
        self.renewed_until(sent + lease.saturating_sub(drift_margin(lease)));
    }

    /// As [`Hold::renewed`], for a given deadline.
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

    /// Marks the hold as lost; the first cause is kept.
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

    /// Ends the belief because the application releases the lock. Returns false if the belief had
    /// ended in this way before.
    pub(crate) fn releasing(&self) -> bool {
        // If the lease ran out unnoticed, record a loss before the release.
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

    /// Ends the belief because the application hands the hold over; its new user releases it.
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

    /// Completes when the hold is lost; never if it is released.
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
