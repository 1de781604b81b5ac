//! What owners believe: which locks they hold, until when and in which mode, and which they wait for.

use std::collections::BTreeMap;

use lockstorm_sim::time::Boottime;

use super::names::Line;
use crate::history::{Host, Lock, Mode, Owner};

/// The beliefs of all owners.
#[derive(Debug, Default)]
pub(super) struct Beliefs {
    /// The single holds that each owner of the production client believes in: an owner of nested holds believes in the lock until
    /// the last of them is given back.
    holds: BTreeMap<(Lock, Owner), BTreeMap<u64, Hold>>,
    /// The owner of each line of work that last came to believe in a lock.
    last: BTreeMap<(Lock, Host, Line), Owner>,
    /// Owners that believe they hold a lock, and owners that wait for one: the longest first.
    believers: Vec<Entry>,
    waiters: Vec<Entry>,
}

/// An owner and a lock, with the line of work that the owner belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) lock: Lock,
    pub(super) owner: Owner,
    pub(super) client: Host,
    pub(super) line: Line,
}

impl Entry {
    fn is_of_line(&self, other: &Entry) -> bool {
        (self.lock, self.client, self.line) == (other.lock, other.client, other.line)
    }
}

/// One hold of the production client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hold {
    /// The clock reading it ends at.
    pub(super) until: Boottime,
    pub(super) mode: Mode,
}

/// What all holds of one owner on one lock come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Belief {
    /// The end of the hold that lasts longest.
    pub(super) until: Boottime,
    pub(super) count: u32,
    /// Shared, unless one of the holds excludes others.
    pub(super) mode: Mode,
}

impl Beliefs {
    /// A hold began; what the owner believes now.
    pub(super) fn hold(&mut self, lock: Lock, owner: Owner, number: u64, hold: Hold) -> Option<Belief> {
        self.holds.entry((lock, owner)).or_default().insert(number, hold);
        self.belief(lock, owner)
    }

    /// A hold was renewed; what the owner believes now.
    pub(super) fn renew(&mut self, lock: Lock, owner: Owner, number: u64, until: Boottime) -> Option<Belief> {
        let holds = self.holds.entry((lock, owner)).or_default();
        holds.entry(number).or_insert(Hold { until, mode: Mode::Exclusive }).until = until;
        self.belief(lock, owner)
    }

    /// A hold ended; what the owner believes now if there are others. `Err` if there was no such hold.
    pub(super) fn let_go(&mut self, lock: Lock, owner: Owner, number: u64) -> Result<Option<Belief>, ()> {
        let holds = self.holds.get_mut(&(lock, owner)).ok_or(())?;
        holds.remove(&number).ok_or(())?;
        Ok(self.belief(lock, owner))
    }

    fn belief(&self, lock: Lock, owner: Owner) -> Option<Belief> {
        let holds = self.holds.get(&(lock, owner))?;
        let until = holds.values().map(|hold| hold.until).max()?;
        let excludes = holds.values().any(|hold| hold.mode == Mode::Exclusive);
        let mode = if excludes { Mode::Exclusive } else { Mode::Shared };
        Some(Belief { until, count: u32::try_from(holds.len()).unwrap_or(u32::MAX), mode })
    }

    /// From now on the owner believes that it holds the lock, and its line of work waits no more; whether it did so before.
    pub(super) fn believes(&mut self, entry: Entry) -> bool {
        self.waiters.retain(|waiter| !waiter.is_of_line(&entry));
        let again = self.is_believer(entry.lock, entry.owner);
        if !again {
            self.believers.push(entry);
            self.last.insert((entry.lock, entry.client, entry.line), entry.owner);
        }
        again
    }

    fn is_believer(&self, lock: Lock, owner: Owner) -> bool {
        self.believers.iter().any(|believer| (believer.lock, believer.owner) == (lock, owner))
    }

    /// From now on the owner knows that it does not hold the lock.
    pub(super) fn disbelieves(&mut self, lock: Lock, owner: Owner) {
        self.believers.retain(|believer| (believer.lock, believer.owner) != (lock, owner));
    }

    /// The owner waits for the lock.
    pub(super) fn waits(&mut self, entry: Entry) {
        if !self.waiters.contains(&entry) {
            self.waiters.push(entry);
        }
    }

    /// The owner has given up waiting.
    pub(super) fn gave_up(&mut self, lock: Lock, owner: Owner) {
        self.waiters.retain(|waiter| (waiter.lock, waiter.owner) != (lock, owner));
    }

    /// A client is gone: none of its owners holds anything or waits any more.
    pub(super) fn crashed(&mut self, client: Host, is_of_client: impl Fn(Owner) -> bool) {
        self.holds.retain(|(_, owner), _| !is_of_client(*owner));
        self.believers.retain(|believer| believer.client != client);
        self.waiters.retain(|waiter| waiter.client != client);
    }

    /// A client is another process from now on.
    pub(super) fn started(&mut self, client: Host) {
        self.last.retain(|(_, host, _), _| *host != client);
    }

    /// Of the owners of a line of work the one that came last to believe that it holds the lock, of those that still do; failing
    /// that, the last one that did.
    pub(super) fn latest(&self, lock: Lock, client: Host, line: Line) -> Option<Owner> {
        let of = (lock, client, line);
        let still = self.believers.iter().rev().find(|entry| (entry.lock, entry.client, entry.line) == of);
        still.map(|believer| believer.owner).or_else(|| self.last.get(&of).copied())
    }

    /// The client that has believed longest that it holds the lock, or any if `None`, of those that still do.
    pub(super) fn holder(&self, lock: Option<Lock>) -> Option<Host> {
        longest(&self.believers, lock)
    }

    /// The client that has waited longest for the lock, or for any if `None`.
    pub(super) fn waiter(&self, lock: Option<Lock>) -> Option<Host> {
        longest(&self.waiters, lock)
    }
}

/// The client of the first entry about the lock, or about any if `None`.
fn longest(entries: &[Entry], lock: Option<Lock>) -> Option<Host> {
    let mut about = entries.iter().filter(|entry| lock.is_none_or(|lock| entry.lock == lock));
    about.next().map(|entry| entry.client)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: Lock = Lock(0);
    const CLIENT: Host = Host(1);

    #[test]
    fn holds_of_a_read_write_lock_are_shared_until_one_excludes() {
        let (mut beliefs, owner) = (Beliefs::default(), Owner(0));
        let hold = |until: i64, mode| Hold { until: Boottime::from_nanos(until), mode };
        let belief =
            |until: i64, count, mode| Some(Belief { until: Boottime::from_nanos(until), count, mode });
        assert_eq!(beliefs.hold(LOCK, owner, 1, hold(5, Mode::Shared)), belief(5, 1, Mode::Shared));
        assert_eq!(beliefs.hold(LOCK, owner, 2, hold(3, Mode::Exclusive)), belief(5, 2, Mode::Exclusive));
        assert_eq!(beliefs.renew(LOCK, owner, 2, Boottime::from_nanos(9)), belief(9, 2, Mode::Exclusive));
        assert_eq!(beliefs.let_go(LOCK, owner, 2), Ok(belief(5, 1, Mode::Shared)));
        assert_eq!(beliefs.let_go(LOCK, owner, 2), Err(()));
        assert_eq!(beliefs.let_go(LOCK, owner, 1), Ok(None));
    }

    #[test]
    fn one_line_of_work_waits_while_another_one_holds() {
        let mut beliefs = Beliefs::default();
        let entry = |line| Entry { lock: LOCK, owner: Owner(line), client: CLIENT, line: Line(line) };
        beliefs.waits(entry(1));
        beliefs.waits(entry(2));
        assert!(!beliefs.believes(entry(1)));
        assert!(beliefs.believes(entry(1)));
        assert_eq!((beliefs.holder(None), beliefs.waiter(Some(LOCK))), (Some(CLIENT), Some(CLIENT)));
        assert!(!beliefs.believes(entry(2)));
        assert_eq!(beliefs.waiter(None), None);
    }

    /// Regression: a late write of the first line of work counted as one of the line that had come last to believe.
    #[test]
    fn a_late_write_is_of_the_line_of_work_that_writes() {
        let mut beliefs = Beliefs::default();
        let entry = |owner, line| Entry { lock: LOCK, owner: Owner(owner), client: CLIENT, line: Line(line) };
        let latest = |beliefs: &Beliefs| [1, 2].map(|line| beliefs.latest(LOCK, CLIENT, Line(line)));
        assert_eq!(latest(&beliefs), [None, None]);
        // The first line may hold the lock under several of its client's owners.
        for entry in [entry(1, 1), entry(2, 2), entry(3, 1)] {
            assert!(!beliefs.believes(entry));
        }
        assert_eq!(latest(&beliefs), [Some(Owner(3)), Some(Owner(2))]);
        beliefs.disbelieves(LOCK, Owner(3));
        assert_eq!(latest(&beliefs), [Some(Owner(1)), Some(Owner(2))]);
        beliefs.disbelieves(LOCK, Owner(1));
        assert_eq!(latest(&beliefs), [Some(Owner(3)), Some(Owner(2))], "the last of its own that did");
        beliefs.started(CLIENT);
        assert_eq!(beliefs.holder(None), Some(CLIENT));
        beliefs.disbelieves(LOCK, Owner(2));
        assert_eq!((latest(&beliefs), beliefs.holder(None)), ([None, None], None));
    }
}
