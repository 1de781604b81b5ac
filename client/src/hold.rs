//! One granted lock as this client believes it: until when, and whether it is known to be lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::env::{Boottime, Env, within};
use crate::error::{ErrorKind, Result};
use crate::key::Key;
use crate::observer::{Event, LostReason, Observer, What};
use crate::wire::drift_margin;
use crate::work::{Token, Work};

/// How late a waiter may notice that a suspended machine is awake again: tokio's timers stand still meanwhile.
const RESUME_CHECK: Duration = Duration::from_secs(1);

/// Locks a mutex whose holders never panic half-way through a change.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every hold needs to know of its client.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) holds: Arc<Holds>,
    pub(crate) work: Arc<Work>,
    /// How long the caller of one operation waits for its outcome.
    pub(crate) call_timeout: Duration,
}

impl Surroundings {
    pub(crate) fn tell(&self, lock: &str, owner: &str, what: What<'_>) {
        self.observer.observe(&Event { lock, owner, what });
    }
}

/// The holds of one client.
#[derive(Default)]
pub(crate) struct Holds(Mutex<Numbered>);

#[derive(Default)]
struct Numbered {
    granted: u64,
    /// By lock and number. A hold leaves when it is dropped.
    alive: BTreeMap<(Key, u64), Weak<Hold>>,
    /// The locks of releases under way, by the number of the hold.
    releasing: BTreeMap<u64, Key>,
    /// The locks of releases that have failed since the client was closed.
    failed: Vec<Key>,
}

/// Releases a hold whose guard is still there.
type GiveBack = Box<dyn Fn() -> Option<BoxFuture<'static, Result<()>>> + Send + Sync>;

impl Holds {
    fn next(&self) -> u64 {
        let mut numbered = locked(&self.0);
        numbered.granted += 1;
        numbered.granted - 1
    }

    fn add(&self, hold: &Arc<Hold>) {
        locked(&self.0).alive.insert((hold.lock.clone(), hold.number), Arc::downgrade(hold));
    }

    /// Begins to release every hold that was not given back; how many there were.
    pub(crate) fn give_all_back(&self, env: &dyn Env) -> usize {
        let all: Vec<Arc<Hold>> = locked(&self.0).alive.values().filter_map(Weak::upgrade).collect();
        let releases: Vec<_> =
            all.iter().filter_map(|hold| hold.give_back.get().and_then(|give| give())).collect();
        let count = releases.len();
        for release in releases {
            env.spawn(Box::pin(async move {
                // The outcome is noted with the hold.
                let _ = release.await;
            }));
        }
        count
    }

    /// How many releases are under way.
    pub(crate) fn releasing(&self) -> usize {
        locked(&self.0).releasing.len()
    }

    /// The locks whose release is under way, or has failed since the client was closed.
    pub(crate) fn unreleased(&self) -> Vec<String> {
        let numbered = locked(&self.0);
        numbered.failed.iter().chain(numbered.releasing.values()).map(ToString::to_string).collect()
    }

    /// Settles that every hold of `lock` is lost.
    pub(crate) fn lose_all(&self, lock: &Key, why: LostReason) {
        // Not under the mutex: the observer may call back, and the last one to know a hold drops it.
        let of_lock: Vec<Arc<Hold>> = {
            let numbered = locked(&self.0);
            let range = (lock.clone(), 0)..=(lock.clone(), u64::MAX);
            numbered.alive.range(range).filter_map(|(_, hold)| hold.upgrade()).collect()
        };
        for hold in of_lock {
            hold.lose(why);
        }
    }
}

/// A granted lock, shared by the guard, the watchdog and whoever awaits its loss.
pub(crate) struct Hold {
    around: Surroundings,
    pub(crate) number: u64,
    pub(crate) lock: Key,
    pub(crate) owner: String,
    pub(crate) lease: Duration,
    pub(crate) token: Option<u64>,
    pub(crate) granted: Boottime,
    state: Mutex<State>,
    changed: Notify,
    give_back: OnceLock<GiveBack>,
}

struct State {
    deadline: Boottime,
    lost: Option<LostReason>,
    released: bool,
    /// While the release is under way.
    releasing: Option<Token>,
}

impl Hold {
    /// A lease of `lease` was granted, and counts until `deadline` by this client's clock.
    pub(crate) fn granted(
        around: Surroundings,
        lock: &Key,
        owner: &str,
        deadline: Boottime,
        lease: Duration,
        token: Option<u64>,
    ) -> Arc<Self> {
        let holds = around.holds.clone();
        let number = holds.next();
        around.tell(lock, owner, What::Acquired { hold: number, lease, deadline, token });
        let hold = Arc::new(Self {
            number,
            lock: lock.clone(),
            owner: owner.to_owned(),
            lease,
            token,
            granted: around.env.boottime(),
            around,
            state: Mutex::new(State { deadline, lost: None, released: false, releasing: None }),
            changed: Notify::new(),
            give_back: OnceLock::new(),
        });
        holds.add(&hold);
        hold
    }

    /// How the hold is given back when the client is closed before its guard is dropped.
    pub(crate) fn given_back_by(
        &self,
        give_back: impl Fn() -> Option<BoxFuture<'static, Result<()>>> + Send + Sync + 'static,
    ) {
        // A hold has one guard.
        let _ = self.give_back.set(Box::new(give_back));
    }

    fn tell(&self, what: What<'_>) {
        self.around.tell(&self.lock, &self.owner, what);
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.around.call_timeout
    }

    pub(crate) fn deadline(&self) -> Boottime {
        locked(&self.state).deadline
    }

    /// The time left, zero when the hold is lost or released.
    pub(crate) fn validity(&self) -> Duration {
        let state = locked(&self.state);
        if state.lost.is_some() || state.released {
            return Duration::ZERO;
        }
        state.deadline - self.around.env.boottime()
    }

    /// True while the client may believe in the lock. The first look after the deadline settles that it is lost.
    pub(crate) fn is_valid(&self) -> bool {
        if self.validity() > Duration::ZERO {
            return true;
        }
        self.lose(LostReason::Expired);
        false
    }

    /// Why the hold is lost, if it is.
    pub(crate) fn why_lost(&self) -> Option<LostReason> {
        locked(&self.state).lost
    }

    /// A renewal sent at `sent` succeeded. Never shortens the hold, and does not bring a lost one back.
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
        self.tell(What::Renewed { hold: self.number, deadline });
    }

    pub(crate) fn renew_failed(&self, error: &crate::error::Error) {
        self.tell(What::RenewFailed { hold: self.number, error });
    }

    /// Settles that the lock is lost; the first reason stays.
    pub(crate) fn lose(&self, why: LostReason) {
        {
            let mut state = locked(&self.state);
            if state.lost.is_some() || state.released {
                return;
            }
            state.lost = Some(why);
        }
        self.tell(What::Lost { hold: self.number, why });
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
            state.releasing = Some(self.around.work.begin());
        }
        locked(&self.around.holds.0).releasing.insert(self.number, self.lock.clone());
        self.tell(What::Releasing { hold: self.number });
        self.changed.notify_waiters();
        true
    }

    pub(crate) fn released(&self, error: Option<&crate::error::Error>) {
        {
            let mut numbered = locked(&self.around.holds.0);
            numbered.releasing.remove(&self.number);
            let failed = error.is_some_and(|error| !matches!(error.kind(), ErrorKind::NotHeld { .. }));
            if failed && self.around.work.is_closing() {
                numbered.failed.push(self.lock.clone());
            }
        }
        let under_way = locked(&self.state).releasing.take();
        drop(under_way);
        self.tell(What::Released { hold: self.number, error });
    }

    /// Completes when there is nothing to keep alive any more: the hold is lost or being released.
    pub(crate) async fn over(&self) {
        let changed = self.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if !self.validity().is_zero() {
            changed.await;
        }
    }

    /// Completes when the hold is lost; never when it is released.
    pub(crate) async fn lost(&self) -> LostReason {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(why) = self.why_lost() {
                return why;
            }
            let left = self.validity();
            let env = &*self.around.env;
            if locked(&self.state).released {
                changed.await;
            } else if left.is_zero() {
                self.lose(LostReason::Expired);
            } else {
                within(env, env.now() + left.min(RESUME_CHECK), changed).await;
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let name = (self.lock.clone(), self.number);
        locked(&self.around.holds.0).alive.remove(&name);
    }
}
