//! The watchdog: renews the leases of locks that are held without one of their own.
//!
//! Each (lock, owner) has its own due time, a third of a lease after its last success. Those that are due together
//! share a script, a failing script is repeated until the lease has run out, and no script waits for another. All are due
//! when the connection ends or another one is made: the server may have come back without its data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::Value;
use tokio::sync::Notify;

use crate::config::{Config, millis};
use crate::env::{Boottime, Env, Monotonic, within};
use crate::error::{Error, Result};
use crate::hold::{Hold, locked};
use crate::key::Key;
use crate::observer::LostReason;
use crate::route::Router;
use crate::script::{Call, script};
use crate::wire::Slot;

script!(RENEW, "renew.lua");

/// The call that extends the leases of `names`, pairs of lock and owner, to `lease`.
pub(crate) fn renewal<'a>(lease: Duration, names: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Call {
    let call = RENEW.call(names.clone().map(|(lock, _)| lock)).arg(millis(lease));
    names.fold(call, |call, (_, owner)| call.arg(owner))
}

/// Reads the reply to [`renewal`]: for each name, whether its owner holds the lock.
pub(crate) fn read_renewal(reply: &Value, names: usize) -> Result<Vec<bool>> {
    let Value::Array(items) = reply else { return Err(Error::unexpected(reply)) };
    let held: Option<Vec<bool>> =
        items.iter().map(|item| if let Value::Int(held) = item { Some(*held == 1) } else { None }).collect();
    held.filter(|held| held.len() == names).ok_or_else(|| Error::unexpected(reply))
}

/// The watchdog of one client.
pub(crate) struct Watchdog {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    router: Arc<Router>,
    state: Mutex<State>,
    changed: Notify,
}

type Name = (Key, String);

#[derive(Default)]
struct State {
    entries: BTreeMap<Name, Entry>,
    running: bool,
}

/// The holds of one owner on one lock, which share a lease on the server.
struct Entry {
    holds: Vec<Arc<Hold>>,
    due: Monotonic,
    failures: u32,
    in_flight: bool,
}

impl Watchdog {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>, router: Arc<Router>) -> Arc<Self> {
        Arc::new(Self { env, config, router, state: Mutex::default(), changed: Notify::new() })
    }

    fn period(&self) -> Duration {
        self.config.watchdog_timeout / 3
    }

    /// Renews `hold` until [`Watchdog::forget`], or until it is lost.
    pub(crate) fn watch(self: &Arc<Self>, hold: Arc<Hold>) {
        // A grant that was long in coming has less left than a new one.
        let due = self.env.now() + self.period().min(hold.validity() / 2);
        let mut state = locked(&self.state);
        let name = (hold.lock.clone(), hold.owner.clone());
        let entry = state.entries.entry(name).or_insert_with(|| Entry {
            holds: Vec::new(),
            due,
            failures: 0,
            in_flight: false,
        });
        entry.due = entry.due.min(due);
        entry.holds.push(hold);
        if !state.running {
            state.running = true;
            self.env.spawn(Box::pin(self.clone().run()));
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Renews `hold` no more. Returns at once: a renewal on its way cannot bring a released lock back.
    pub(crate) fn forget(&self, hold: &Hold) {
        let mut state = locked(&self.state);
        let name = (hold.lock.clone(), hold.owner.clone());
        if let Some(entry) = state.entries.get_mut(&name) {
            entry.holds.retain(|other| other.number != hold.number);
            if entry.holds.is_empty() {
                state.entries.remove(&name);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Renews no hold of `lock` any more: it was released by force.
    pub(crate) fn forget_lock(&self, lock: &Key) {
        locked(&self.state).entries.retain(|(name, _), _| name != lock);
        self.changed.notify_one();
    }

    /// Runs while there is anything to renew.
    async fn run(self: Arc<Self>) {
        loop {
            // From before the look, so that nothing is missed that happens behind it.
            let disturbance = self.router.disturbance();
            let (next, expired) = {
                let mut state = locked(&self.state);
                let expired = self.start_due(&mut state);
                state.running = !state.entries.is_empty();
                let waiting = state.entries.values().filter(|entry| !entry.in_flight);
                (state.running.then(|| waiting.map(|entry| entry.due).min()), expired)
            };
            // Not under the mutex: the observer may call back.
            for hold in expired {
                hold.lose(LostReason::Expired);
            }
            let Some(next) = next else { return };
            let due = async {
                match next {
                    Some(due) => self.env.sleep_until(due).await,
                    // Everything is in flight; whoever comes back rings.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = disturbance => self.hasten(),
                () = due => {}
            }
        }
    }

    /// Makes everything due that is not under way.
    fn hasten(&self) {
        let now = self.env.now();
        for entry in locked(&self.state).entries.values_mut() {
            entry.due = now;
        }
    }

    /// Starts what is due and returns the holds that are past their deadline.
    fn start_due(self: &Arc<Self>, state: &mut State) -> Vec<Arc<Hold>> {
        let now = self.env.now();
        if !state.entries.values().any(|entry| !entry.in_flight && entry.due <= now) {
            return Vec::new();
        }
        let mut expired = Vec::new();
        state.entries.retain(|_, entry| {
            expired.extend(entry.holds.extract_if(.., |hold| hold.validity().is_zero()));
            entry.in_flight || !entry.holds.is_empty()
        });
        // Those that are due a little later come along, so that locks taken together stay in one script.
        let soon = now + self.period() / 10;
        let mut batches: BTreeMap<Slot, Vec<Name>> = BTreeMap::new();
        for (name, entry) in &mut state.entries {
            if !entry.in_flight && entry.due <= soon {
                entry.in_flight = true;
                batches.entry(self.router.together(name.0.slot())).or_default().push(name.clone());
            }
        }
        for batch in batches.values() {
            for names in batch.chunks(self.config.renew_batch.max(1)) {
                self.env.spawn(Box::pin(self.clone().renew(names.to_vec())));
            }
        }
        expired
    }

    async fn renew(self: Arc<Self>, names: Vec<Name>) {
        let call = renewal(
            self.config.watchdog_timeout,
            names.iter().map(|(lock, owner)| (&**lock, owner.as_str())),
        );
        let (sent, sent_at) = (self.env.boottime(), self.env.now());
        let done = self.send(&call).await.and_then(|reply| read_renewal(&reply, names.len()));
        let mut news = Vec::new();
        {
            let mut state = locked(&self.state);
            let now = self.env.now();
            for (i, name) in names.into_iter().enumerate() {
                let Some(entry) = state.entries.get_mut(&name) else { continue };
                entry.in_flight = false;
                let (due, news_of_all) = match &done {
                    Ok(held) if held[i] => (sent_at + self.period(), News::Renewed),
                    Ok(_) => (now + self.period(), News::NotHeld),
                    Err(_) => (now + self.retry_delay(entry.failures), News::Failed),
                };
                entry.due = due;
                entry.failures = if matches!(news_of_all, News::Failed) { entry.failures + 1 } else { 0 };
                if matches!(news_of_all, News::NotHeld) {
                    news.extend(granted_before(&mut entry.holds, sent).map(|hold| (hold, news_of_all)));
                } else {
                    news.extend(entry.holds.iter().map(|hold| (hold.clone(), news_of_all)));
                }
                if entry.holds.is_empty() {
                    state.entries.remove(&name);
                }
            }
        }
        // Not under the mutex: the observer may call back.
        for (hold, news) in news {
            match (news, &done) {
                (News::Renewed, _) => hold.renewed(sent, self.config.watchdog_timeout),
                (News::NotHeld, _) => hold.lose(LostReason::NotHeld),
                (News::Failed, Err(error)) => hold.renew_failed(error),
                (News::Failed, Ok(_)) => {}
            }
        }
        self.changed.notify_one();
    }

    /// Sends once. A renewal that takes longer than a period is worth less than a new one.
    async fn send(&self, call: &Call) -> Result<Value> {
        let limit = self.env.now() + self.period();
        let node = self.router.node(call.slot());
        let Some(connection) = within(&*self.env, limit, node.connection()).await else {
            return Err(self.config.no_reply());
        };
        let connection = connection?;
        within(&*self.env, limit, node.run_on(&connection, call))
            .await
            .unwrap_or_else(|| Err(node.retire_on(&connection, self.config.no_reply())))
    }

    fn retry_delay(&self, failures: u32) -> Duration {
        self.config.retry_delay(&*self.env, failures).min(self.period() / 4)
    }
}

/// Takes those out that the reply to a question sent at `sent` can be about: it says nothing about a lock that was granted
/// since.
fn granted_before(holds: &mut Vec<Arc<Hold>>, sent: Boottime) -> impl Iterator<Item = Arc<Hold>> {
    holds.extract_if(.., move |hold| hold.granted <= sent)
}

/// What a renewal came to, for the holds of one entry.
#[derive(Clone, Copy)]
enum News {
    Renewed,
    NotHeld,
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnv;
    use crate::hold::Surroundings;
    use crate::observer::Silent;

    /// The owner's lock was gone when it was asked for, and granted to it anew before the reply came on another connection.
    #[tokio::test]
    async fn not_held_says_nothing_about_a_hold_granted_since_the_question() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let around = Surroundings {
            env: env.clone(),
            observer: Arc::new(Silent),
            holds: Arc::default(),
            work: Arc::default(),
            call_timeout: Duration::from_secs(10),
        };
        let lease = Duration::from_secs(30);
        let grant =
            || Hold::granted(around.clone(), &Key::new("l"), "o", env.boottime() + lease, lease, None);
        let older = grant();
        let sent = env.boottime();
        while env.boottime() == sent {}
        let mut holds = vec![older.clone(), grant()];
        let over: Vec<_> = granted_before(&mut holds, sent).map(|hold| hold.number).collect();
        assert_eq!(over, [older.number]);
        assert_eq!(holds.len(), 1);
    }
}
