//! A node of an audit: its locks, and the limits of how many are kept.

use std::collections::BTreeMap;

use super::{
    capture::Times,
    command::Call,
    findings::Findings,
    follow,
    locks::{Figures, IDLE_US, LOCKS_MAX, Lock},
    objects::{Object, Objects},
    shadow::Shadow,
};

/// The most locks of a node, even if all of them are held.
const HELD_MAX: usize = 4 * LOCKS_MAX;

/// A held key that was not used for this long, and that nothing has shown to be a lock, is dropped
/// before others: requests are marked as done by SET NX, too, with a long expiry.
const STALE_US: i64 = 60_000_000;

/// A node of the audit.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// The locks, by database and key.
    pub(super) locks: BTreeMap<u32, BTreeMap<Box<[u8]>, Lock>>,
    pub(super) shadow: Shadow,
    /// The locks that several clients may hold.
    pub(super) objects: Objects,
    /// The call whose script may still be running.
    pub(super) open: Option<Call>,
    pub(super) commands: u64,
    pub(super) first_us: Option<i64>,
    /// The time of the first command since the last gap, and before that `None`.
    pub(super) gap_us: Option<i64>,
    /// Set from a gap to the next command: the holds from before it are not doubted yet.
    pub(super) has_gap: bool,
    pub(super) now_us: i64,
    pub(super) times: Times,
    /// Set for a node that is audited by keyspace events and reads.
    pub(super) is_gentle: bool,
    /// The number of locks at which idle ones are dropped.
    sweep_at: usize,
    /// The locks that were dropped, and their figures.
    pub(super) dropped: (u64, Figures),
}

impl Node {
    pub(super) fn new(name: String) -> Node {
        let (locks, shadow, objects) = (BTreeMap::new(), Shadow::new(), Objects::default());
        let dropped = (0, Figures::default());
        let (open, commands, first_us, now_us, times) = (None, 0, None, 0, Times::Exact);
        let (gap_us, has_gap, is_gentle, sweep_at) = (None, false, false, LOCKS_MAX);
        Node {
            name,
            locks,
            shadow,
            objects,
            open,
            commands,
            first_us,
            gap_us,
            has_gap,
            now_us,
            times,
            is_gentle,
            sweep_at,
            dropped,
        }
    }

    /// Makes all holds unsure: commands are missing that may have ended them.
    pub(super) fn doubt(&mut self) {
        let holds = self.locks.values_mut().flat_map(BTreeMap::values_mut);
        holds.filter_map(|lock| lock.hold.as_mut()).for_each(|hold| hold.is_sure = false);
        self.objects.doubt();
    }

    /// Forgets the waiters: their connections may have ended with that of the audit. Those that
    /// still wait ask again.
    pub(super) fn forget_waiters(&mut self) {
        self.locks.values_mut().flat_map(BTreeMap::values_mut).for_each(Lock::forget_waiters);
    }

    pub(super) fn has(&self, db: u32, key: &[u8]) -> bool {
        self.locks.get(&db).is_some_and(|locks| locks.contains_key(key)) || self.objects.has(db, key)
    }

    /// Drops locks if there are too many: first free ones that were not used for a while, then all
    /// free ones, then held keys that nothing has shown to be locks, and at last all.
    pub(super) fn sweep(&mut self, findings: &mut Findings) {
        let count = self.count();
        if count < self.sweep_at {
            return;
        }
        // The file of a server has the end of each lease as a command.
        let is_live = self.times == Times::Exact;
        let mut strangers = BTreeMap::new();
        for pass in [Pass::Idle, Pass::Free, Pass::Stale, Pass::Unproven, Pass::All] {
            let count = self.count();
            // Each sweep leaves room for as many locks as it looks at.
            if count < LOCKS_MAX / 2 || pass == Pass::All && count <= HELD_MAX / 2 {
                break;
            }
            let (now_us, shadow, dropped) = (self.now_us, &mut self.shadow, &mut self.dropped);
            for (db, locks) in &mut self.locks {
                locks.retain(|key, lock| {
                    if is_live {
                        follow::lapse(lock, now_us.div_euclid(1_000));
                    }
                    let is_kept = pass.keeps(lock, now_us);
                    if !is_kept {
                        shadow.free(now_us, *db, key);
                        dropped.0 += 1;
                        dropped.1.join(&lock.figures);
                        if lock.uses() != (true, true) {
                            strangers.insert((*db, key.clone()), lock.uses());
                        }
                    }
                    is_kept
                });
            }
        }
        findings.judge(&self.name, |db, key| strangers.get(&(db, Box::from(key))).copied());
        self.sweep_at = LOCKS_MAX.max(self.count().saturating_mul(2)).min(HELD_MAX);
    }

    /// Returns the keys that are used as locks, with their databases.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &[u8], Used<'_>)> {
        let plain = self
            .locks
            .iter()
            .flat_map(|(db, locks)| locks.iter().map(move |(key, lock)| (*db, &**key, Used::Plain(lock))));
        let objects = self.objects.all().map(|(db, key, object)| (db, key, Used::Object(object)));
        plain.chain(objects).filter(|(_, _, used)| used.lock().is_lock())
    }

    /// Returns a key's lock, if it is used as one.
    pub(super) fn used_at(&self, db: u32, key: &[u8]) -> Option<Used<'_>> {
        let plain = self.locks.get(&db).and_then(|locks| locks.get(key)).map(Used::Plain);
        let used = plain.or_else(|| self.objects.get(db, key).map(Used::Object));
        used.filter(|used| used.lock().is_lock())
    }

    pub(super) fn count(&self) -> usize {
        self.locks.values().map(BTreeMap::len).sum()
    }
}

/// A key that is used as a lock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Used<'a> {
    /// A lock with one holder.
    Plain(&'a Lock),
    /// A lock that several clients may hold, or a latch.
    Object(&'a Object),
}

impl<'a> Used<'a> {
    /// Returns the figures. Only those of a plain lock have a hold.
    pub(super) fn lock(self) -> &'a Lock {
        match self {
            Used::Plain(lock) => lock,
            Used::Object(object) => &object.lock,
        }
    }

    /// Returns true if it has a holder whose lease is not over.
    pub(super) fn is_held(self, now_us: i64) -> bool {
        let now_ms = now_us.div_euclid(1_000);
        match self {
            Used::Plain(lock) => {
                lock.hold.as_ref().is_some_and(|hold| hold.expires_ms.is_none_or(|at| at >= now_ms))
            }
            Used::Object(object) => object.is_held_at(now_ms),
        }
    }

    /// Returns the number of waiting clients.
    pub(super) fn waiters(self, now_us: i64) -> usize {
        match self {
            Used::Plain(lock) => lock.waiters(now_us),
            Used::Object(object) => object.waiters(now_us),
        }
    }
}

/// A pass over the locks of a node that drops some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Idle,
    Free,
    Stale,
    Unproven,
    All,
}

impl Pass {
    fn keeps(self, lock: &Lock, now_us: i64) -> bool {
        let (is_held, unused_us) = (lock.hold.is_some(), now_us - lock.last_us);
        match self {
            Pass::Idle => is_held || unused_us < IDLE_US,
            Pass::Free => is_held,
            Pass::Stale => is_held && (lock.is_lock() || unused_us < STALE_US),
            Pass::Unproven => is_held && lock.is_lock(),
            Pass::All => false,
        }
    }
}
