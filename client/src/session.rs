//! What the locks of one client share.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::config::Config;
use crate::departures::Departures;
use crate::env::Env;
use crate::hold::{Hold, Surroundings, locked};
use crate::key::Key;
use crate::owner::{self, OwnerId};
use crate::renew::Watchdog;
use crate::route::Router;
use crate::wake::Hubs;

/// How many acquisitions of one client are under way on the wire at a time. A caller who goes before the turn of its
/// request has come leaves nothing to do; what was sent is followed up until its outcome is known, and no more than this.
const ASKS_AT_ONCE: usize = 1024;

/// How many nodes' worth of RedLocks may be unanswered by this client's server. It counts as silent for those beyond.
const CLAIMS_AT_ONCE: usize = 1024;

/// The state behind all handles of one client.
pub(crate) struct Session {
    pub(crate) around: Surroundings,
    pub(crate) config: Arc<Config>,
    pub(crate) client_id: String,
    pub(crate) router: Arc<Router>,
    pub(crate) hubs: Hubs,
    pub(crate) watchdog: Arc<Watchdog>,
    pub(crate) departures: Arc<Departures>,
    /// Permits to ask for a lock.
    pub(crate) asks: Semaphore,
    /// Permits to ask this client's server for its part of a RedLock.
    pub(crate) claims: Arc<Semaphore>,
    turns: Mutex<Turns>,
}

impl Session {
    pub(crate) fn new(around: Surroundings, config: Config, client_id: String) -> Arc<Self> {
        let (env, config) = (around.env.clone(), Arc::new(config));
        let router = Arc::new(Router::new(env.clone(), config.clone()));
        let hubs = Hubs::new(env.clone(), config.clone(), router.clone());
        let watchdog = Watchdog::new(env.clone(), config.clone(), router.clone());
        let departures = Departures::new(env, config.clone(), router.clone(), around.work.clone());
        let asks = Semaphore::new(ASKS_AT_ONCE);
        let claims = Arc::new(Semaphore::new(CLAIMS_AT_ONCE));
        let turns = Mutex::default();
        Arc::new(Self { around, config, client_id, router, hubs, watchdog, departures, asks, claims, turns })
    }

    pub(crate) fn env(&self) -> &dyn Env {
        &*self.around.env
    }

    /// The name in Redis of what the application calls `name`.
    pub(crate) fn key(&self, name: &str) -> Key {
        self.config.name_mapper.as_ref().map_or_else(|| Key::new(name), |mapper| Key::new(&mapper(name)))
    }

    pub(crate) fn field(&self, owner: OwnerId) -> String {
        owner::field(&self.client_id, owner)
    }

    /// What this client knows of one owner and one lock: the same for all who ask while anybody keeps it.
    pub(crate) fn turn<T: Any + Default + Send + Sync>(&self, lock: &str, owner: &str) -> Arc<T> {
        let mut turns = locked(&self.turns);
        let name = (TypeId::of::<T>(), lock.to_owned(), owner.to_owned());
        let known = turns.by_name.get(&name).and_then(Weak::upgrade);
        if let Some(turn) = known.and_then(|turn| turn.downcast().ok()) {
            return turn;
        }
        turns.sweep();
        let turn = Arc::new(T::default());
        let weak: Weak<T> = Arc::downgrade(&turn);
        turns.by_name.insert(name, weak);
        turn
    }
}

/// By the kind of lock, which knows its own of an owner, the lock and the owner.
#[derive(Default)]
struct Turns {
    by_name: BTreeMap<(TypeId, String, String), Weak<dyn Any + Send + Sync>>,
    sweep_at: usize,
}

impl Turns {
    /// Forgets what nobody uses, whenever the map has doubled: constant work per insertion over time.
    fn sweep(&mut self) {
        if self.by_name.len() >= self.sweep_at {
            self.by_name.retain(|_, turn| turn.strong_count() > 0);
            self.sweep_at = 2 * self.by_name.len() + 16;
        }
    }
}

/// One owner at one lock.
///
/// Its scripts run one after another, so that after a lost reply the count in Redis can be compared with the holds
/// known here: one more means that the acquire did happen.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) mine: tokio::sync::Mutex<()>,
    holds: Mutex<Vec<Weak<Hold>>>,
}

impl Turn {
    pub(crate) fn add(&self, hold: &Arc<Hold>) {
        let mut holds = locked(&self.holds);
        holds.retain(|hold| hold.strong_count() > 0);
        holds.push(Arc::downgrade(hold));
    }

    pub(crate) fn remove(&self, number: u64) {
        locked(&self.holds).retain(|hold| hold.upgrade().is_some_and(|hold| hold.number != number));
    }

    /// The holds that count in Redis, as far as this client knows.
    pub(crate) fn count(&self) -> usize {
        let holds: Vec<_> = locked(&self.holds).iter().filter_map(Weak::upgrade).collect();
        holds.iter().filter(|hold| hold.why_lost().is_none()).count()
    }

    /// How long the longest of the holds lasts, by this client's clock, if it is not renewed.
    pub(crate) fn longest_validity(&self) -> Duration {
        let holds: Vec<_> = locked(&self.holds).iter().filter_map(Weak::upgrade).collect();
        holds.iter().map(|hold| hold.validity()).max().unwrap_or_default()
    }

    /// True when the owner took the lock anew after `hold` was over. To release `hold` would then take a level away
    /// from the newer one.
    pub(crate) fn superseded(&self, hold: &Hold) -> bool {
        let over = hold.deadline();
        let holds: Vec<_> = locked(&self.holds).iter().filter_map(Weak::upgrade).collect();
        hold.why_lost().is_some()
            && holds.iter().any(|other| other.number != hold.number && other.granted > over)
    }
}
