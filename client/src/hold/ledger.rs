//! The registry of all holds of one client, by key and owner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::{Hold, Levels, Parts};
use crate::env::{Boottime, Env};
use crate::key::Key;
use crate::mutex::locked;
use crate::observer::LossCause;
use crate::wire::drift_margin;
use crate::work::Trouble;

/// The owners of one client and their holds.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Book>);

#[derive(Default)]
struct Book {
    /// The number of holds granted so far; numbers the holds.
    granted: u64,
    /// The number of owners without a name so far.
    anonymous: u64,
    /// An owner removes its entry when it is dropped.
    owners: BTreeMap<(Key, String), Weak<OwnerState>>,
    /// The keys of releases under way, by the number of the hold.
    releasing: BTreeMap<u64, Key>,
    /// The keys of releases that failed after the client began to close.
    failed: Vec<Key>,
}

impl Ledger {
    /// Returns the state of `owner` at `key`. All requests share one state as long as any of them
    /// keeps it.
    pub(crate) fn owner(self: &Arc<Self>, key: &Key, owner: &str) -> Arc<OwnerState> {
        self.entry(&mut locked(&self.0), key, owner.to_owned())
    }

    /// Returns the state of a new owner that no other request shares.
    pub(crate) fn anonymous(self: &Arc<Self>, key: &Key) -> Arc<OwnerState> {
        let mut book = locked(&self.0);
        book.anonymous += 1;
        // The name has no colon. Every owner field has one, so the two never collide.
        let name = format!("anonymous {}", book.anonymous);
        self.entry(&mut book, key, name)
    }

    fn entry(self: &Arc<Self>, book: &mut Book, key: &Key, owner: String) -> Arc<OwnerState> {
        let name = (key.clone(), owner);
        if let Some(known) = book.owners.get(&name).and_then(Weak::upgrade) {
            return known;
        }
        let (ledger, key, owner) = (self.clone(), name.0.clone(), name.1.clone());
        let state = Arc::new(OwnerState {
            ledger,
            key,
            owner,
            serial: tokio::sync::Mutex::default(),
            trouble: Trouble::default(),
            holds: Mutex::default(),
            lasts: Mutex::new(Lasts { until: Boottime(Duration::ZERO), from: 0 }),
        });
        book.owners.insert(name, Arc::downgrade(&state));
        state
    }

    pub(super) fn next_number(&self) -> u64 {
        let mut book = locked(&self.0);
        book.granted += 1;
        book.granted - 1
    }

    /// Begins to release every hold of this client. Returns their number.
    pub(crate) fn give_all_back(&self, env: &dyn Env) -> usize {
        let owners: Vec<_> = locked(&self.0).owners.values().filter_map(Weak::upgrade).collect();
        let holds: Vec<_> = owners.iter().flat_map(|owner| owner.holds()).collect();
        let releases: Vec<_> = holds.iter().filter_map(Hold::give_back).collect();
        let count = releases.len();
        for release in releases {
            env.spawn(Box::pin(async move {
                // The ledger records the outcome.
                let _ = release.await;
            }));
        }
        count
    }

    pub(super) fn release_begins(&self, hold: &Hold) {
        locked(&self.0).releasing.insert(hold.number, hold.key.clone());
    }

    /// With `note` the failed release is recorded, because the client is closing.
    pub(super) fn release_ends(&self, hold: &Hold, note: bool) {
        let mut book = locked(&self.0);
        book.releasing.remove(&hold.number);
        if note {
            book.failed.push(hold.key.clone());
        }
    }

    /// Returns the number of releases under way.
    pub(crate) fn releasing(&self) -> usize {
        locked(&self.0).releasing.len()
    }

    /// Returns the keys whose release is under way, or failed after the client began to close.
    pub(crate) fn unreleased(&self) -> Vec<String> {
        let book = locked(&self.0);
        book.failed.iter().chain(book.releasing.values()).map(ToString::to_string).collect()
    }

    /// Marks every hold of `key` as lost that has a part in common with `parts`.
    pub(crate) fn lose_all(&self, key: &Key, parts: &Parts, why: LossCause) {
        // Not under the mutex: the observer may call back, and dropping the last reference to an
        // owner takes the mutex.
        let owners: Vec<_> = {
            let book = locked(&self.0);
            let of_key = book.owners.range((key.clone(), String::new())..);
            of_key
                .take_while(|((other, _), _)| other == key)
                .filter_map(|(_, owner)| owner.upgrade())
                .collect()
        };
        let holds = owners.iter().flat_map(|owner| owner.holds());
        for hold in holds.filter(|hold| hold.parts.overlap(parts)) {
            hold.lose(why);
        }
    }
}

/// The state of one owner at one key.
///
/// Requests of an owner run one after another. So after a lost reply the count in Redis can be
/// compared with the holds known here: one more means that the request was executed.
pub(crate) struct OwnerState {
    ledger: Arc<Ledger>,
    pub(crate) key: Key,
    pub(crate) owner: String,
    /// Locked while a request of the owner is under way.
    pub(crate) serial: tokio::sync::Mutex<()>,
    /// The failures of the release that is under way.
    pub(crate) trouble: Trouble,
    /// The levels that are not released, by number.
    holds: Mutex<BTreeMap<u64, Weak<Hold>>>,
    lasts: Mutex<Lasts>,
}

/// The time until which a server may still have levels of an owner that have ended by this client's
/// clock. It is an upper bound if two assumptions hold: a request that was given up does not arrive
/// after its timeout, and the server's wall clock neither stops nor goes back. If one fails, a
/// leftover level may be mistaken for a grant when the reply to the owner's next request is lost. A
/// level whose release has failed is not counted.
#[derive(Clone, Copy)]
struct Lasts {
    until: Boottime,
    /// Levels with lower numbers belong to a key that had expired before the last request.
    from: u64,
}

impl OwnerState {
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn add(&self, hold: &Arc<Hold>) {
        locked(&self.holds).insert(hold.number, Arc::downgrade(hold));
    }

    /// Stops counting the hold, which is released.
    pub(crate) fn remove(&self, number: u64) {
        locked(&self.holds).remove(&number);
    }

    /// Returns the levels that are not released, in the order of their grants.
    pub(crate) fn holds(&self) -> Vec<Arc<Hold>> {
        // Upgrade under the mutex, and let the caller drop the references: dropping the last
        // reference to a hold takes this mutex.
        locked(&self.holds).values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the levels of exactly these parts that the watchdog has to renew.
    pub(crate) fn renewed(&self, parts: &Parts) -> Vec<Arc<Hold>> {
        let mut holds = self.holds();
        holds.retain(|hold| hold.parts == *parts && hold.is_renewed());
        holds
    }

    /// Records that a request sent at `sent` sets the owner's lease to `lease`. The request is
    /// executed within `patience`, or never.
    ///
    /// Records the same for owners of the key whose field begins with this owner's field and a
    /// colon: a renewed read hold also keeps the write hold of the same owner alive.
    pub(crate) fn may_last(&self, sent: Boottime, patience: Duration, lease: Duration) {
        // Dropped outside the mutex, because dropping the last reference to an owner takes it.
        let (next, others) = {
            let book = locked(&self.ledger.0);
            let field = format!("{}:", self.owner);
            let others = book.owners.range((self.key.clone(), field.clone())..);
            let others = others.take_while(|((key, owner), _)| *key == self.key && owner.starts_with(&field));
            (book.granted, others.filter_map(|(_, owner)| owner.upgrade()).collect::<Vec<_>>())
        };
        for owner in std::iter::once(self).chain(others.iter().map(|owner| &**owner)) {
            owner.lasts_from(next, sent, patience, lease);
        }
    }

    fn lasts_from(&self, next: u64, sent: Boottime, patience: Duration, lease: Duration) {
        let mut lasts = locked(&self.lasts);
        if sent >= lasts.until {
            lasts.from = next;
        }
        lasts.until = lasts.until.max(sent + patience + lease.saturating_add(drift_margin(lease)));
    }

    /// Returns the time until which a server may have any level of the owner, given all requests so
    /// far.
    pub(crate) fn lasts_until(&self) -> Boottime {
        locked(&self.lasts).until
    }

    /// Returns the number of levels that Redis counts for the owner at each part, as far as this
    /// client knows at `now`. A level does not end with its own lease but with the key or part,
    /// which the longest lease keeps. A level that has ended by this client's clock may still exist
    /// on the server.
    pub(crate) fn levels(&self, parts: &Parts, now: Boottime) -> Vec<Levels> {
        let holds = self.holds();
        let of_owner: Vec<_> = holds.iter().filter(|hold| hold.owner == self.owner).collect();
        let lasts = *locked(&self.lasts);
        let levels = |part| {
            let (mut least, mut most) = (0, 0);
            for hold in of_owner.iter().filter(|hold| hold.outermost(part).is_some()) {
                let is_there = hold.keeps_the_key() || is_kept(hold, part, &holds);
                let is_over = matches!(hold.why_lost(), None | Some(LossCause::Expired));
                least += usize::from(is_there);
                let may_be_there = now < lasts.until && hold.number >= lasts.from;
                most += usize::from(is_there || is_over && may_be_there);
            }
            Levels { least, most }
        };
        parts.iter().map(levels).collect()
    }

    /// Returns the number of the hold with which the key, or this part of it, was created, if that
    /// still exists. The next grant nests inside that hold.
    pub(super) fn outermost(&self, part: &str) -> Option<u64> {
        let holds = self.holds();
        holds.iter().filter(|hold| hold.keeps_the_key()).find_map(|hold| hold.outermost(part))
    }

    /// Returns the longest validity of the holds, if they are not renewed.
    pub(crate) fn longest_validity(&self) -> Duration {
        self.holds().iter().map(|hold| hold.validity()).max().unwrap_or_default()
    }

    /// Returns true if `hold` is lost, and the owner has since acquired the lock again, with a new
    /// key. Releasing `hold` would then take a level from the newer hold.
    pub(crate) fn superseded(&self, hold: &Hold) -> bool {
        let holds = self.holds();
        let is_anew =
            |part| holds.iter().any(|other| other.outermost(part).is_some_and(|first| first > hold.number));
        hold.why_lost().is_some() && hold.parts.iter().any(is_anew)
    }
}

/// Returns true if another hold has kept the part since before this hold ended.
fn is_kept(hold: &Hold, part: &str, holds: &[Arc<Hold>]) -> bool {
    holds.iter().any(|other| other.outermost(part) == hold.outermost(part) && other.keeps_the_key())
}

impl Drop for OwnerState {
    fn drop(&mut self) {
        let mut book = locked(&self.ledger.0);
        let name = (self.key.clone(), std::mem::take(&mut self.owner));
        // Another state may have taken the entry since.
        if book.owners.get(&name).is_some_and(|state| state.strong_count() == 0) {
            book.owners.remove(&name);
        }
    }
}
