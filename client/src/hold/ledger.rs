//! What one client holds: the one registry of its holds, by key and by owner.

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
    /// Holds granted so far, which numbers them.
    granted: u64,
    /// Owners that named none so far.
    anonymous: u64,
    /// An owner leaves when it is dropped.
    owners: BTreeMap<(Key, String), Weak<OwnerState>>,
    /// The keys of releases under way, by the number of the hold.
    releasing: BTreeMap<u64, Key>,
    /// The keys of releases that have failed since the client was closed.
    failed: Vec<Key>,
}

impl Ledger {
    /// What this client knows of `owner` at `key`: the same for all requests while one of them
    /// keeps it.
    pub(crate) fn owner(self: &Arc<Self>, key: &Key, owner: &str) -> Arc<OwnerState> {
        self.entry(&mut locked(&self.0), key, owner.to_owned())
    }

    /// As [`Ledger::owner`], of an owner that no other request has.
    pub(crate) fn anonymous(self: &Arc<Self>, key: &Key) -> Arc<OwnerState> {
        let mut book = locked(&self.0);
        book.anonymous += 1;
        // Without a colon, which every owner field has.
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

    /// Begins to release every hold that was not given back; how many there were.
    pub(crate) fn give_all_back(&self, env: &dyn Env) -> usize {
        let owners: Vec<_> = locked(&self.0).owners.values().filter_map(Weak::upgrade).collect();
        let holds: Vec<_> = owners.iter().flat_map(|owner| owner.holds()).collect();
        let releases: Vec<_> = holds.iter().filter_map(Hold::give_back).collect();
        let count = releases.len();
        for release in releases {
            env.spawn(Box::pin(async move {
                // The outcome is noted here.
                let _ = release.await;
            }));
        }
        count
    }

    pub(super) fn release_begins(&self, hold: &Hold) {
        locked(&self.0).releasing.insert(hold.number, hold.key.clone());
    }

    /// With `note` the client is being closed, and the release has failed.
    pub(super) fn release_ends(&self, hold: &Hold, note: bool) {
        let mut book = locked(&self.0);
        book.releasing.remove(&hold.number);
        if note {
            book.failed.push(hold.key.clone());
        }
    }

    /// How many releases are under way.
    pub(crate) fn releasing(&self) -> usize {
        locked(&self.0).releasing.len()
    }

    /// The keys whose release is under way, or has failed since the client was closed.
    pub(crate) fn unreleased(&self) -> Vec<String> {
        let book = locked(&self.0);
        book.failed.iter().chain(book.releasing.values()).map(ToString::to_string).collect()
    }

    /// Settles that every hold of `key` is lost that has a part in common with `parts`.
    pub(crate) fn lose_all(&self, key: &Key, parts: &Parts, why: LossCause) {
        // Not under the mutex: the observer may call back, and the last one to know an owner drops
        // it.
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

/// One owner at one key.
///
/// Its requests run one after another, so that after a lost reply the count in Redis can be
/// compared with the holds known here: one more means that the request was obeyed.
pub(crate) struct OwnerState {
    ledger: Arc<Ledger>,
    pub(crate) key: Key,
    pub(crate) owner: String,
    /// Held while a request of the owner is under way.
    pub(crate) serial: tokio::sync::Mutex<()>,
    /// Of the release that is under way.
    pub(crate) trouble: Trouble,
    /// The levels that were not given back, by number.
    holds: Mutex<BTreeMap<u64, Weak<Hold>>>,
    lasts: Mutex<Lasts>,
}

/// Until when a server may have levels of an owner that are over by this client's clock. It is a
/// bound where a request that was given up does not arrive later than its time-out, and where the
/// server's wall clock neither stands still nor goes back: what is beyond that is taken for a grant
/// when the reply to the owner's next request is lost. A level that was given back in vain is not
/// counted.
#[derive(Clone, Copy)]
struct Lasts {
    until: Boottime,
    /// Levels with lower numbers are of a key that was gone before the last request.
    from: u64,
}

impl OwnerState {
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn add(&self, hold: &Arc<Hold>) {
        locked(&self.holds).insert(hold.number, Arc::downgrade(hold));
    }

    /// The hold is given back: it is not counted any more.
    pub(crate) fn remove(&self, number: u64) {
        locked(&self.holds).remove(&number);
    }

    /// The levels that were not given back, in the order in which they were granted.
    pub(crate) fn holds(&self) -> Vec<Arc<Hold>> {
        // Collected first: the last one to know a hold drops it, which takes this mutex.
        locked(&self.holds).values().filter_map(Weak::upgrade).collect()
    }

    /// The levels of just these parts that the watchdog is to renew.
    pub(crate) fn renewed(&self, parts: &Parts) -> Vec<Arc<Hold>> {
        let mut holds = self.holds();
        holds.retain(|hold| hold.parts == *parts && hold.is_renewed());
        holds
    }

    /// A request that was sent at `sent` sets the owner's lease to `lease`. It is obeyed within
    /// `patience` from then on, if it ever is.
    ///
    /// So are the levels that the same user has by a field that begins with this one: what an owner
    /// reads keeps what it writes.
    pub(crate) fn may_last(&self, sent: Boottime, patience: Duration, lease: Duration) {
        // Dropped outside of the mutex, which the last one to know an owner takes.
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

    /// Until when a server may have any level of the owner, by all that was set until now.
    pub(crate) fn lasts_until(&self) -> Boottime {
        locked(&self.lasts).until
    }

    /// The levels that Redis counts for the owner at each of the parts, as far as this client knows
    /// at `now`. A level does not end with its own lease, but with what it is of, which the longest
    /// lease keeps. One that is over by this client's clock may be there still.
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

    /// The hold that the next grant is inside of at a part, with which the key, or the part in it,
    /// came into being: its number.
    pub(super) fn outermost(&self, part: &str) -> Option<u64> {
        let holds = self.holds();
        holds.iter().filter(|hold| hold.keeps_the_key()).find_map(|hold| hold.outermost(part))
    }

    /// How long the longest of the holds lasts, by this client's clock, if it is not renewed.
    pub(crate) fn longest_validity(&self) -> Duration {
        self.holds().iter().map(|hold| hold.validity()).max().unwrap_or_default()
    }

    /// True when the owner took the lock anew after `hold` was over, and its key with it. To
    /// release `hold` would then take a level away from the newer one.
    pub(crate) fn superseded(&self, hold: &Hold) -> bool {
        let holds = self.holds();
        let is_anew =
            |part| holds.iter().any(|other| other.outermost(part).is_some_and(|first| first > hold.number));
        hold.why_lost().is_some() && hold.parts.iter().any(is_anew)
    }
}

/// Whether another of the holds has kept the part since before this one was over.
fn is_kept(hold: &Hold, part: &str, holds: &[Arc<Hold>]) -> bool {
    holds.iter().any(|other| other.outermost(part) == hold.outermost(part) && other.keeps_the_key())
}

impl Drop for OwnerState {
    fn drop(&mut self) {
        let mut book = locked(&self.ledger.0);
        let name = (self.key.clone(), std::mem::take(&mut self.owner));
        // Another one may have taken the place meanwhile.
        if book.owners.get(&name).is_some_and(|state| state.strong_count() == 0) {
            book.owners.remove(&name);
        }
    }
}
