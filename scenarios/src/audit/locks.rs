//! One lock of a node: its holder, its former holders, its waiters, and its figures.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use super::{command::Call, tally::Durations};

/// The number of locks of a node from which idle ones are dropped. Locks that several clients may
/// hold are counted by themselves.
pub(super) const LOCKS_MAX: usize = 100_000;

/// A free lock that was not used for this long is dropped first.
pub(super) const IDLE_US: i64 = 600_000_000;

/// The number of lost holds that are remembered, to recognize late commands of their owners.
const PAST_MAX: usize = 8;

/// The number of refused owners that are remembered.
const REFUSED_MAX: usize = 16;

/// The most waiters of one lock.
const WAITERS_MAX: usize = 1_000;

/// A waiter that has not asked for this long has given up.
const GIVES_UP_US: i64 = 60_000_000;

/// The number of buckets for the lateness of renewals, each a tenth of the lease.
pub(super) const TENTHS: usize = 11;

/// The lease of a hold, as it was last set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leased {
    pub(super) set_us: i64,
    pub(super) lease_ms: Option<i64>,
    /// The number of times that its owner renewed it, or tried to after its end.
    pub(super) renewed: u64,
}

/// A hold that the node has granted.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub(super) owner: String,
    pub(super) since_us: i64,
    /// The time at which the lease was last set.
    pub(super) set_us: i64,
    pub(super) lease_ms: Option<i64>,
    pub(super) expires_ms: Option<i64>,
    pub(super) levels: u32,
    pub(super) renewed: u64,
    /// The command that granted it.
    pub(super) grant: Rc<Call>,
    /// False for a SET NX whose reply the capture does not imply: the key may have been held since
    /// before the capture, or until a moment later.
    pub(super) is_sure: bool,
    /// The name of the former master that granted it, if this node replaced that one.
    pub(super) moved: Option<Rc<str>>,
}

impl Hold {
    pub(super) fn leased(&self) -> Leased {
        Leased { set_us: self.set_us, lease_ms: self.lease_ms, renewed: self.renewed }
    }
}

/// The way a hold ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By its owner, or by the connection that had acquired it.
    Released,
    /// By its lease.
    Expired,
    /// By a command that no owner's release is.
    Broken,
    /// The capture does not show it.
    Unknown,
}

/// A hold that its owner lost.
#[derive(Debug, Clone)]
pub(super) struct Past {
    pub(super) owner: String,
    pub(super) ended_us: i64,
    pub(super) end: End,
    pub(super) lease_ms: Option<i64>,
    /// The time at which the lease was last set.
    set_us: i64,
    renewed: u64,
    pub(super) grant: Rc<Call>,
    /// False if the hold may never have been granted.
    pub(super) is_sure: bool,
    /// The grant of another owner after this hold.
    pub(super) next: Option<(String, Rc<Call>)>,
    /// The finding about its end.
    pub(super) finding: Option<usize>,
}

impl Past {
    pub(super) fn leased(&self) -> Leased {
        Leased { set_us: self.set_us, lease_ms: self.lease_ms, renewed: self.renewed }
    }
}

/// A client that asked for the lock and was refused.
#[derive(Debug, Clone)]
struct Waiter {
    since_us: i64,
    last_us: i64,
    /// The owner for which it asked last.
    owner: Option<Box<str>>,
}

/// The figures of a lock.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) grants: u64,
    pub(super) refusals: u64,
    pub(super) renewals: u64,
    pub(super) releases: u64,
    /// Releases by DEL, without a check of the owner.
    pub(super) unchecked: u64,
    pub(super) expiries: u64,
    /// Holds that ended in another way.
    pub(super) broken: u64,
    pub(super) without_expiry: u64,
    /// Renewals by the share of the lease that had passed, in tenths.
    pub(super) lateness: [u64; TENTHS],
    /// The sum of these shares, in percent.
    pub(super) passed_percent: u64,
    pub(super) holds: Durations,
    pub(super) waits: Durations,
}

impl Figures {
    /// Counts a renewal at which this share of the lease had passed, in percent.
    pub(super) fn passes(&mut self, percent: i64) {
        let tenth = usize::try_from(percent / 10).unwrap_or(0).min(TENTHS - 1);
        self.lateness[tenth] += 1;
        self.passed_percent = self.passed_percent.saturating_add(u64::try_from(percent).unwrap_or(0));
    }

    /// Adds the figures of another lock.
    pub(super) fn join(&mut self, other: &Figures) {
        self.grants += other.grants;
        self.refusals += other.refusals;
        self.renewals += other.renewals;
        self.releases += other.releases;
        self.unchecked += other.unchecked;
        self.expiries += other.expiries;
        self.broken += other.broken;
        self.without_expiry += other.without_expiry;
        self.lateness.iter_mut().zip(other.lateness).for_each(|(own, other)| *own += other);
        self.passed_percent = self.passed_percent.saturating_add(other.passed_percent);
        self.holds.join(&other.holds);
        self.waits.join(&other.waits);
    }
}

/// A lock of a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Lock {
    pub(super) library: Option<&'static str>,
    pub(super) hold: Option<Hold>,
    pub(super) past: VecDeque<Past>,
    /// The time of the last release.
    pub(super) released_us: Option<i64>,
    refused: VecDeque<String>,
    waiters: BTreeMap<Box<str>, Waiter>,
    /// The addresses that a waiter had before it reconnected, with its token.
    left: VecDeque<(Box<str>, Box<str>)>,
    /// Tokens for which several connections ask at a time: they name no waiter.
    common: VecDeque<Box<str>>,
    pub(super) figures: Figures,
    pub(super) first_us: i64,
    pub(super) last_us: i64,
    /// Set if a script of the lock has shown an owner's field or token: it is no mere key.
    pub(super) is_proven: bool,
    pub(super) shared_name: bool,
    /// Set for a lock that a pattern of the user names.
    pub(super) is_named: bool,
    /// Set between HINCRBY and the expiry that its script sets. Only append-only files need it.
    pub(super) takes_expiry: bool,
    /// Set for a read-write lock of Redisson, which has its mode in a field and many owners. It is
    /// not followed.
    pub(super) has_mode: bool,
    /// The notice of the first renewal that came late.
    pub(super) near_miss: Option<usize>,
    /// The notice of the first release by another owner than the holder.
    pub(super) not_holder: Option<usize>,
}

impl Lock {
    /// Returns a free lock, first used at a time.
    pub(super) fn new(first_us: i64) -> Lock {
        Lock { first_us, ..Lock::default() }
    }

    /// Returns true if the key is used as a lock: it was released, renewed or granted by a script.
    pub(super) fn is_lock(&self) -> bool {
        let Figures { releases, renewals, unchecked, .. } = self.figures;
        !self.has_mode && (self.is_proven || self.is_named || releases + renewals + unchecked > 0)
    }

    /// Returns true if the key is used as a lock, and then true if its releases compare an owner.
    pub(super) fn uses(&self) -> (bool, bool) {
        (self.is_lock(), self.is_proven || self.figures.renewals > 0)
    }

    /// Returns the most recent hold that an owner lost.
    pub(super) fn lost(&mut self, owner: &str) -> Option<&mut Past> {
        self.past.iter_mut().rev().find(|past| past.owner == owner)
    }

    /// Ends the hold. Returns the lost hold, for the finding about it, unless it was released.
    pub(super) fn ends(&mut self, at_us: i64, end: End) -> Option<&mut Past> {
        let hold = self.hold.take()?;
        match end {
            End::Released => self.figures.releases += 1,
            End::Expired => self.figures.expiries += 1,
            End::Broken | End::Unknown => self.figures.broken += 1,
        }
        // Some sources do not show when a hold began.
        if hold.since_us > 0 {
            self.figures.holds.add(at_us.saturating_sub(hold.since_us));
        }
        if end == End::Released {
            self.released_us = Some(at_us);
            return None;
        }
        let Hold { owner, lease_ms, set_us, renewed, grant, is_sure, .. } = hold;
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        let (next, finding, ended_us) = (None, None, at_us);
        self.past.push_back(Past {
            owner,
            ended_us,
            end,
            lease_ms,
            set_us,
            renewed,
            grant,
            is_sure,
            next,
            finding,
        });
        self.past.back_mut()
    }

    /// Begins a hold.
    pub(super) fn begins(&mut self, hold: Hold, waiter: &str) {
        let call = hold.grant.clone();
        self.moves(Some(&hold.owner), waiter);
        self.grants(waiter, hold.since_us);
        self.refused.retain(|owner| *owner != hold.owner);
        // A name that is granted again is no longer late.
        self.past.retain(|past| past.owner != hold.owner);
        for past in self.past.iter_mut().filter(|past| past.next.is_none()) {
            past.next = Some((hold.owner.clone(), call.clone()));
        }
        self.hold = Some(hold);
    }

    /// Counts a grant to a client, and the time for which it waited.
    pub(super) fn grants(&mut self, waiter: &str, at_us: i64) {
        self.figures.grants += 1;
        let waited = self.waiters.remove(waiter);
        let begun_us = waited.filter(|waiter| at_us - waiter.last_us <= GIVES_UP_US);
        self.figures.waits.add(begun_us.map_or(0, |waiter| at_us - waiter.since_us));
    }

    /// Counts a refused request.
    pub(super) fn refuses(&mut self, owner: Option<&str>, waiter: &str, at_us: i64) {
        self.figures.refusals += 1;
        if let Some(owner) = owner {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.pop_front();
            }
            self.refused.push_back(owner.to_owned());
        }
        self.moves(owner, waiter);
        let token = owner.map(Box::from);
        match self.waiters.get_mut(waiter) {
            Some(waiter) if at_us - waiter.last_us <= GIVES_UP_US => {
                (waiter.last_us, waiter.owner) = (at_us, token);
            }
            _ => {
                if self.waiters.len() >= WAITERS_MAX {
                    self.waiters.retain(|_, waiter| at_us - waiter.last_us <= GIVES_UP_US);
                }
                if self.waiters.len() < WAITERS_MAX {
                    let new = Waiter { since_us: at_us, last_us: at_us, owner: token };
                    self.waiters.insert(waiter.into(), new);
                }
            }
        }
    }

    /// Gives a waiter its new address if it asks with its token from there: it has reconnected.
    /// A token for which the former address asks as well is common to several waiters.
    fn moves(&mut self, owner: Option<&str>, to: &str) {
        let Some(owner) = owner.filter(|owner| *owner != to) else { return };
        if self.common.iter().any(|token| **token == *owner) {
            return;
        }
        if let Some(at) = self.left.iter().position(|(from, token)| **from == *to && **token == *owner) {
            self.left.remove(at);
            if self.common.len() >= PAST_MAX {
                self.common.pop_front();
            }
            self.common.push_back(owner.into());
            return;
        }
        if self.waiters.contains_key(to) {
            return;
        }
        let is_its = |waiter: &Waiter| waiter.owner.as_deref() == Some(owner);
        let from = self.waiters.iter().find(|(_, waiter)| is_its(waiter)).map(|(from, _)| from.clone());
        if let Some(waiter) = from.as_ref().and_then(|from| self.waiters.remove(from)) {
            if self.left.len() >= PAST_MAX {
                self.left.pop_front();
            }
            self.left.extend(from.map(|from| (from, owner.into())));
            self.waiters.insert(to.into(), waiter);
        }
    }

    /// Forgets all waiters: their connections may have ended.
    pub(super) fn forget_waiters(&mut self) {
        self.waiters.clear();
        self.left.clear();
    }

    /// Returns true if an owner was refused lately.
    pub(super) fn has_refused(&self, owner: &str) -> bool {
        self.refused.iter().any(|refused| refused == owner)
    }

    /// Returns the number of clients that were refused and have not given up.
    pub(super) fn waiters(&self, now_us: i64) -> usize {
        self.waiters.values().filter(|waiter| now_us - waiter.last_us <= GIVES_UP_US).count()
    }

    /// Sets the expiry of the hold. Counts it as a renewal if it `is_renewal`, and then returns the
    /// share of the lease that had passed, in percent. `None` for the first lease of a lock that
    /// was granted without one.
    pub(super) fn renews(&mut self, at_us: i64, expires_ms: Option<i64>, is_renewal: bool) -> Option<i64> {
        let hold = self.hold.as_mut()?;
        let (lease_us, passed_us) =
            (hold.lease_ms.map(|lease| lease.saturating_mul(1_000)), at_us - hold.set_us);
        hold.expires_ms = expires_ms;
        hold.set_us = at_us;
        hold.lease_ms = expires_ms.map(|at| at.saturating_sub(at_us.div_euclid(1_000)));
        let lease_us = lease_us.filter(|lease| *lease > 0 && is_renewal)?;
        hold.renewed += 1;
        self.figures.renewals += 1;
        let percent = passed_us.max(0).saturating_mul(100) / lease_us;
        self.figures.passes(percent);
        Some(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_reconnects_is_one_waiter() {
        let mut lock = Lock::new(0);
        lock.refuses(Some("token"), "10.0.0.1:1", 1_000);
        lock.refuses(Some("other"), "10.0.0.2:1", 1_000);
        lock.refuses(Some("token"), "10.0.0.1:2", 2_000);
        assert_eq!(lock.waiters(2_000), 2);
        // It is granted after a third connection, and has waited since the first.
        lock.moves(Some("token"), "10.0.0.1:3");
        lock.grants("10.0.0.1:3", 9_000);
        assert_eq!((lock.waiters(9_000), lock.figures.waits.longest_us()), (1, Some(8_000)));
    }

    /// Simple locks have the same value for all clients.
    #[test]
    fn a_common_token_names_no_waiter() {
        let mut lock = Lock::new(0);
        for at_us in 0..4 {
            lock.refuses(Some("1"), "10.0.0.1:1", at_us);
            lock.refuses(Some("1"), "10.0.0.2:1", at_us);
            lock.refuses(Some("1"), "10.0.0.3:1", at_us);
        }
        assert_eq!(lock.waiters(4), 3);
    }
}
