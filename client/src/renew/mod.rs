//! The watchdog: renews the leases of locks that are held without a lease of their own.
//!
//! Each (lock, owner) has its own due time, a third of a lease after its last success. Renewals
//! that are due together share a script. A failing script is retried until the lease has run out,
//! and no script waits for another. All renewals become due when the connection ends or a new one
//! is made, because the server may have come back without its data.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use redis::Value;
use tokio::sync::Notify;

use crate::config::{Config, millis};
use crate::env::{Boottime, Env, Monotonic, within};
use crate::error::{Error, Result};
use crate::hold::{Hold, OwnerState, Parts};
use crate::key::Key;
use crate::mutex::locked;
use crate::observer::LossCause;
use crate::route::{Request, Router};
use crate::script::{Call, script};
use crate::wire::Slot;

script!(RENEW_HASHES, "renew.lua");

/// The way in which the watchdog renews the holds of a kind of lock.
#[derive(Clone, Copy)]
pub(crate) enum Renewal {
    /// By a script, which renews many locks in one call.
    Script(&'static RenewalScript),
    /// One by one, through [`Keeper::extend`](crate::hold::Keeper::extend).
    Keeper,
}

/// A script that extends the leases of many locks. Pure: it writes the call and reads the reply.
pub(crate) struct RenewalScript {
    /// Identifies the script, and orders batches.
    pub(crate) name: &'static str,
    pub(crate) call: fn(Duration, &[Name]) -> Call,
    /// Reads from the reply, for each name, if its owner holds the lock.
    pub(crate) read: fn(&Value, usize) -> Result<Vec<bool>>,
}

/// The renewal of all locks that are a hash with a field for each owner.
pub(crate) static HASHES: RenewalScript =
    RenewalScript { name: "hashes", call: renew_hashes, read: read_flags };

impl RenewalScript {
    /// Writes the call that extends the lease of one lock to `lease`.
    pub(crate) fn call_one(&self, lease: Duration, key: &Key, owner: &str, parts: &Parts) -> Call {
        (self.call)(lease, &[Name { key: key.clone(), owner: owner.to_owned(), parts: parts.clone() }])
    }

    /// Reads the reply to [`RenewalScript::call_one`]: true if the owner holds the lock.
    pub(crate) fn read_one(&self, reply: &Value) -> Result<bool> {
        Ok((self.read)(reply, 1)? == [true])
    }
}

fn renew_hashes(lease: Duration, names: &[Name]) -> Call {
    let call = RENEW_HASHES.call(names.iter().map(|name| &*name.key)).arg(millis(lease));
    names.iter().fold(call, |call, name| call.arg(&name.owner))
}

/// Reads the reply of a script that returns 1 or 0 for each name.
pub(crate) fn read_flags(reply: &Value, names: usize) -> Result<Vec<bool>> {
    let Value::Array(items) = reply else { return Err(Error::unexpected(reply)) };
    let held: Option<Vec<bool>> =
        items.iter().map(|item| if let Value::Int(held) = item { Some(*held == 1) } else { None }).collect();
    held.filter(|held| held.len() == names).ok_or_else(|| Error::unexpected(reply))
}

pub(crate) struct Watchdog {
    env: Arc<dyn Env>,
    config: Arc<Config>,
    router: Arc<Router>,
    state: Mutex<State>,
    changed: Notify,
}

/// The unit of renewal: an owner field's hold on these parts of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) key: Key,
    pub(crate) owner: String,
    pub(crate) parts: Parts,
}

fn name_of(hold: &Hold) -> Name {
    Name { key: hold.key.clone(), owner: hold.of.owner.clone(), parts: hold.parts.clone() }
}

#[derive(Default)]
struct State {
    entries: BTreeMap<Name, Entry>,
    running: bool,
}

/// One owner of one lock. Its levels share one lease on the server.
struct Entry {
    of: Arc<OwnerState>,
    renewal: Renewal,
    due: Monotonic,
    failures: u32,
    in_flight: bool,
    /// Set if the server may have changed while a renewal was under way that followed no failure.
    /// If that renewal fails, it is retried without a delay.
    is_hastened: bool,
}

impl Watchdog {
    pub(crate) fn new(env: Arc<dyn Env>, config: Arc<Config>, router: Arc<Router>) -> Arc<Self> {
        Arc::new(Self { env, config, router, state: Mutex::default(), changed: Notify::new() })
    }

    fn period(&self) -> Duration {
        self.config.watchdog_timeout / 3
    }

    /// Renews `hold` with `renewal` until [`Watchdog::forget`], or until it is lost.
    pub(crate) fn watch(self: &Arc<Self>, hold: &Hold, renewal: Renewal) {
        // If the grant took long, less than a full lease is left.
        let due = self.env.now() + self.period().min(hold.validity() / 2);
        let mut state = locked(&self.state);
        let of = hold.of.clone();
        let entry = state.entries.entry(name_of(hold)).or_insert_with(|| Entry {
            of,
            renewal,
            due,
            failures: 0,
            in_flight: false,
            is_hastened: false,
        });
        entry.due = entry.due.min(due);
        if !state.running {
            state.running = true;
            self.env.spawn(Box::pin(self.clone().run()));
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Stops the renewal of `hold`, which is released or lost. Does not wait for a renewal in
    /// transit: it cannot create a released lock.
    pub(crate) fn forget(&self, hold: &Hold) {
        let mut state = locked(&self.state);
        let name = name_of(hold);
        let is_last =
            |entry: &Entry| entry.of.renewed(&name.parts).iter().all(|other| other.number == hold.number);
        let last =
            if state.entries.get(&name).is_some_and(is_last) { state.entries.remove(&name) } else { None };
        drop((state, last));
        self.changed.notify_one();
    }

    /// Runs while any entry needs renewal.
    async fn run(self: Arc<Self>) {
        loop {
            // Start to watch before checking, or a disturbance in between is lost.
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
                hold.lose(LossCause::Expired);
            }
            let Some(next) = next else { return };
            let due = async {
                match next {
                    Some(due) => self.env.sleep_until(due).await,
                    // All entries are in flight; each renewal notifies `changed` when it ends.
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

    /// Makes all script renewals due now. A Redlock's renewals are not affected: the loss of the
    /// data of one node does not cost the quorum.
    fn hasten(&self) {
        let now = self.env.now();
        for entry in locked(&self.state).entries.values_mut() {
            if matches!(entry.renewal, Renewal::Script(_)) {
                entry.due = now;
                entry.is_hastened = entry.in_flight && entry.failures == 0;
            }
        }
    }

    /// Starts the renewals that are due. Returns the holds that are past their deadline.
    fn start_due(self: &Arc<Self>, state: &mut State) -> Vec<Arc<Hold>> {
        let now = self.env.now();
        if !state.entries.values().any(|entry| !entry.in_flight && entry.due <= now) {
            return Vec::new();
        }
        let mut expired = Vec::new();
        state.entries.retain(|name, entry| {
            let mut holds = entry.of.renewed(&name.parts);
            expired.extend(holds.extract_if(.., |hold| hold.validity().is_zero()));
            entry.in_flight || !holds.is_empty()
        });
        // Include those that are due a little later, so that locks acquired together keep sharing a
        // script.
        let soon = now + self.period() / 10;
        let mut batches: BTreeMap<(Slot, &str), (&RenewalScript, Vec<Name>)> = BTreeMap::new();
        for (name, entry) in &mut state.entries {
            if entry.in_flight || entry.due > soon {
                continue;
            }
            entry.in_flight = true;
            match entry.renewal {
                Renewal::Script(script) => {
                    let batch = (self.router.together(name.key.slot()), script.name);
                    batches.entry(batch).or_insert((script, Vec::new())).1.push(name.clone());
                }
                Renewal::Keeper => {
                    self.env
                        .spawn(Box::pin(self.clone().extend(name.clone(), entry.of.renewed(&name.parts))));
                }
            }
        }
        for (script, batch) in batches.into_values() {
            for names in batch.chunks(self.config.renew_batch.max(1)) {
                self.env.spawn(Box::pin(self.clone().renew(script, names.to_vec())));
            }
        }
        expired
    }

    /// Renews holds of kinds without a renewal script.
    async fn extend(self: Arc<Self>, name: Name, holds: Vec<Arc<Hold>>) {
        let sent_at = self.env.now();
        let kept = holds.iter().filter_map(|hold| Some((hold, hold.keeper()?)));
        let (holds, extended): (Vec<_>, Vec<_>) = kept
            .map(|(hold, keeper)| (hold, keeper.extend(hold.clone(), self.config.watchdog_timeout)))
            .unzip();
        let extended = join_all(extended).await;
        let failures: Vec<_> = holds
            .iter()
            .zip(&extended)
            .filter_map(|(hold, extended)| Some((hold, extended.as_ref().err()?)))
            .filter(|(hold, _)| hold.is_renewed())
            .collect();
        {
            let mut state = locked(&self.state);
            if let Some(entry) = state.entries.get_mut(&name) {
                entry.in_flight = false;
                let failed = !failures.is_empty();
                entry.due = if failed {
                    self.env.now() + self.retry_delay(entry.failures)
                } else {
                    sent_at + self.period()
                };
                entry.failures = if failed { entry.failures + 1 } else { 0 };
                if entry.of.renewed(&name.parts).is_empty() {
                    state.entries.remove(&name);
                }
            }
        }
        // Not under the mutex: the observer may call back.
        for (hold, error) in failures {
            hold.renew_failed(error);
        }
        self.changed.notify_one();
    }

    async fn renew(self: Arc<Self>, script: &'static RenewalScript, names: Vec<Name>) {
        let call = (script.call)(self.config.watchdog_timeout, &names);
        let (sent, sent_at) = (self.env.boottime(), self.env.now());
        {
            let state = locked(&self.state);
            for entry in names.iter().filter_map(|name| state.entries.get(name)) {
                entry.of.may_last(sent, self.period(), self.config.watchdog_timeout);
            }
        }
        let done = self.send(&call).await.and_then(|reply| (script.read)(&reply, names.len()));
        let mut news = Vec::new();
        {
            let mut state = locked(&self.state);
            let now = self.env.now();
            for (i, name) in names.into_iter().enumerate() {
                let Some(entry) = state.entries.get_mut(&name) else { continue };
                entry.in_flight = false;
                let is_hastened = std::mem::take(&mut entry.is_hastened);
                let (due, news_of_all) = match &done {
                    Ok(held) if held[i] => (sent_at + self.period(), News::Renewed),
                    Ok(_) => (now + self.period(), News::NotHeld),
                    Err(_) if is_hastened => (now, News::Failed),
                    Err(_) => (now + self.retry_delay(entry.failures), News::Failed),
                };
                entry.due = due;
                entry.failures = if matches!(news_of_all, News::Failed) { entry.failures + 1 } else { 0 };
                let mut holds = entry.of.renewed(&name.parts);
                if matches!(news_of_all, News::NotHeld) {
                    news.extend(granted_before(&mut holds, sent).map(|hold| (hold, news_of_all)));
                } else {
                    news.extend(holds.iter().map(|hold| (hold.clone(), news_of_all)));
                }
                if holds.is_empty() {
                    state.entries.remove(&name);
                }
            }
        }
        // Not under the mutex: the observer may call back.
        for (hold, news) in news {
            match (news, &done) {
                (News::Renewed, _) => hold.renewed(sent, self.config.watchdog_timeout),
                (News::NotHeld, _) => hold.lose(LossCause::NotHeld),
                (News::Failed, Err(error)) => hold.renew_failed(error),
                (News::Failed, Ok(_)) => {}
            }
        }
        self.changed.notify_one();
    }

    /// Sends the call once, within a period: after that a new renewal is worth more.
    async fn send(&self, call: &Call) -> Result<Value> {
        let limit = self.env.now() + self.period();
        let Some(path) = within(&*self.env, limit, pin!(self.router.path_of(call))).await else {
            return Err(self.config.no_reply());
        };
        let mut path = path?;
        let request = Request::Script(call);
        let done = within(&*self.env, limit, pin!(self.router.once(call.slot(), &mut path, &request))).await;
        done.unwrap_or_else(|| Err(path.retire_on(self.config.no_reply())))
    }

    fn retry_delay(&self, failures: u32) -> Duration {
        self.config.retry_delay(&*self.env, failures).min(self.period() / 4)
    }
}

/// Takes out the holds granted before `sent`. The reply to a request sent at that time says nothing
/// about later ones.
fn granted_before(holds: &mut Vec<Arc<Hold>>, sent: Boottime) -> impl Iterator<Item = Arc<Hold>> {
    holds.extract_if(.., move |hold| hold.granted <= sent)
}

/// The outcome of a renewal, for the holds of one entry.
#[derive(Clone, Copy)]
enum News {
    Renewed,
    NotHeld,
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::tests::Setting;

    /// The lock was gone when the renewal ran. Before that reply arrived, the owner was granted the
    /// lock again over another connection.
    #[test]
    fn not_held_says_nothing_about_a_hold_granted_since_the_question() {
        let setting = Setting::new();
        let older = setting.grant();
        let sent = setting.clock.boottime();
        setting.clock.set(1);
        let newer = setting.grant();
        let mut holds = setting.owner.renewed(&Parts::WHOLE);
        assert_eq!(holds.len(), 2);
        let over: Vec<_> = granted_before(&mut holds, sent).map(|hold| hold.number).collect();
        assert_eq!(over, [older.number]);
        assert_eq!(holds.iter().map(|hold| hold.number).collect::<Vec<_>>(), [newer.number]);
    }
}
