//! The beliefs of owners: the locks that they hold, until when and in which mode, and the locks
//! that they wait for.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_world::time::Boottime;

use super::names::Line;
use crate::judge::history::{Host, Lock, Mode, Owner};

/// The beliefs of all owners.
#[derive(Debug, Default)]
pub(super) struct Beliefs {
    /// The individual holds of each owner of the production client, by mode, with their ends on the
    /// boottime clock. An owner of nested holds believes in the lock until it releases the last of
    /// them.
    holds: BTreeMap<(Lock, Owner, Mode), BTreeMap<u64, Boottime>>,
    /// The owner of each line of work that most recently began to believe in a lock.
    last: BTreeMap<(Lock, Host, Line), Owner>,
    /// The owners that believe they hold a lock, in any mode, longest first. `waiters` has the
    /// owners that wait for one, also longest first.
    believers: Vec<Entry>,
    waiters: Vec<Entry>,
    /// The modes in which each believer holds a lock.
    modes: BTreeMap<(Lock, Owner), BTreeSet<Mode>>,
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

/// The sum of all holds of one owner on one lock in one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Belief {
    /// The end of the hold that lasts longest.
    pub(super) until: Boottime,
    pub(super) count: u32,
}

impl Beliefs {
    /// Adds or renews a hold that ends at `until`. Returns the owner's belief afterwards.
    pub(super) fn hold(&mut self, of: (Lock, Owner, Mode), number: u64, until: Boottime) -> Option<Belief> {
        self.holds.entry(of).or_default().insert(number, until);
        self.belief(of)
    }

    /// Ends a hold. Returns the owner's belief afterwards, `None` if this was the last hold, or
    /// `Err` if there was no such hold.
    pub(super) fn let_go(&mut self, of: (Lock, Owner, Mode), number: u64) -> Result<Option<Belief>, ()> {
        let holds = self.holds.get_mut(&of).ok_or(())?;
        holds.remove(&number).ok_or(())?;
        Ok(self.belief(of))
    }

    fn belief(&self, of: (Lock, Owner, Mode)) -> Option<Belief> {
        let holds = self.holds.get(&of)?;
        let until = holds.values().copied().max()?;
        Some(Belief { until, count: u32::try_from(holds.len()).unwrap_or(u32::MAX) })
    }

    /// Begins or renews the owner's belief that it holds the lock, and ends its line of work's
    /// waiting. Returns true if the owner already believed it in this mode.
    pub(super) fn believes(&mut self, entry: Entry, mode: Mode) -> bool {
        self.waiters.retain(|waiter| !waiter.is_of_line(&entry));
        let modes = self.modes.entry((entry.lock, entry.owner)).or_default();
        let (first, again) = (modes.is_empty(), !modes.insert(mode));
        if first {
            self.believers.push(entry);
            self.last.insert((entry.lock, entry.client, entry.line), entry.owner);
        }
        again
    }

    /// Returns the modes in which the owner believes that it holds the lock.
    pub(super) fn modes(&self, lock: Lock, owner: Owner) -> BTreeSet<Mode> {
        self.modes.get(&(lock, owner)).cloned().unwrap_or_default()
    }

    /// Ends the owner's belief that it holds the lock in this mode.
    pub(super) fn disbelieves(&mut self, lock: Lock, owner: Owner, mode: Mode) {
        let modes = self.modes.entry((lock, owner)).or_default();
        modes.remove(&mode);
        if modes.is_empty() {
            self.modes.remove(&(lock, owner));
            self.believers.retain(|believer| (believer.lock, believer.owner) != (lock, owner));
        }
    }

    /// Adds the owner to the lock's waiters.
    pub(super) fn waits(&mut self, entry: Entry) {
        if !self.waiters.contains(&entry) {
            self.waiters.push(entry);
        }
    }

    /// Removes the owner from the lock's waiters.
    pub(super) fn gave_up(&mut self, lock: Lock, owner: Owner) {
        self.waiters.retain(|waiter| (waiter.lock, waiter.owner) != (lock, owner));
    }

    /// Removes the holds, beliefs and waits of all owners of a crashed client.
    pub(super) fn crashed(&mut self, client: Host, is_of_client: impl Fn(Owner) -> bool) {
        self.holds.retain(|(_, owner, _), _| !is_of_client(*owner));
        self.modes.retain(|(_, owner), _| !is_of_client(*owner));
        self.believers.retain(|believer| believer.client != client);
        self.waiters.retain(|waiter| waiter.client != client);
    }

    /// Forgets the previous owners of a client, because a new process has started.
    pub(super) fn started(&mut self, client: Host) {
        self.last.retain(|(_, host, _), _| *host != client);
    }

    /// Returns the owner of a line of work that most recently began to believe that it holds the
    /// lock, among those that still do. If there is none, returns the last one that did.
    pub(super) fn latest(&self, lock: Lock, client: Host, line: Line) -> Option<Owner> {
        let of = (lock, client, line);
        let still = self.believers.iter().rev().find(|entry| (entry.lock, entry.client, entry.line) == of);
        still.map(|believer| believer.owner).or_else(|| self.last.get(&of).copied())
    }

    /// Returns the client that has believed longest that it holds the lock, among those that still
    /// do. `None` stands for any lock.
    pub(super) fn holder(&self, lock: Option<Lock>) -> Option<Host> {
        longest(&self.believers, lock)
    }

    /// Returns the client that has waited longest for the lock. `None` stands for any lock.
    pub(super) fn waiter(&self, lock: Option<Lock>) -> Option<Host> {
        longest(&self.waiters, lock)
    }
}

/// Returns the client of the first entry for the lock. `None` stands for any lock.
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
    fn an_owner_believes_in_its_holds_of_each_mode_apart() {
        let (mut beliefs, owner) = (Beliefs::default(), Owner(0));
        let (reads, writes) = ((LOCK, owner, Mode::Shared), (LOCK, owner, Mode::Exclusive));
        let at = Boottime::from_nanos;
        let belief = |until: i64, count| Some(Belief { until: at(until), count });
        assert_eq!(beliefs.hold(writes, 1, at(3)), belief(3, 1));
        assert_eq!(beliefs.hold(reads, 2, at(5)), belief(5, 1));
        assert_eq!(beliefs.hold(reads, 3, at(4)), belief(5, 2));
        assert_eq!(beliefs.hold(reads, 3, at(9)), belief(9, 2), "it is renewed");
        assert_eq!(beliefs.let_go(reads, 1), Err(()));
        assert_eq!(beliefs.let_go(writes, 1), Ok(None));
        assert_eq!(beliefs.let_go(reads, 3), Ok(belief(5, 1)));
        assert_eq!(beliefs.let_go(reads, 2), Ok(None));
    }

    /// A writer takes a read hold as well and gives up writing.
    #[test]
    fn a_believer_is_one_until_it_believes_in_no_mode() {
        let mut beliefs = Beliefs::default();
        let entry = Entry { lock: LOCK, owner: Owner(1), client: CLIENT, line: Line(1) };
        assert!(!beliefs.believes(entry, Mode::Exclusive));
        assert!(!beliefs.believes(entry, Mode::Shared));
        beliefs.disbelieves(LOCK, Owner(1), Mode::Exclusive);
        assert!(beliefs.believes(entry, Mode::Shared), "it is renewed");
        assert_eq!(beliefs.holder(None), Some(CLIENT));
        beliefs.disbelieves(LOCK, Owner(1), Mode::Shared);
        assert_eq!(beliefs.holder(None), None);
    }

    #[test]
    fn one_line_of_work_waits_while_another_one_holds() {
        let mut beliefs = Beliefs::default();
        let entry = |line| Entry { lock: LOCK, owner: Owner(line), client: CLIENT, line: Line(line) };
        beliefs.waits(entry(1));
        beliefs.waits(entry(2));
        assert!(!beliefs.believes(entry(1), Mode::Exclusive));
        assert!(beliefs.believes(entry(1), Mode::Exclusive));
        assert_eq!((beliefs.holder(None), beliefs.waiter(Some(LOCK))), (Some(CLIENT), Some(CLIENT)));
        assert!(!beliefs.believes(entry(2), Mode::Exclusive));
        assert_eq!(beliefs.waiter(None), None);
    }

    /// Regression: a late write of the first line of work was attributed to the line that had most
    /// recently begun to believe.
    #[test]
    fn a_late_write_is_of_the_line_of_work_that_writes() {
        let mut beliefs = Beliefs::default();
        let entry = |owner, line| Entry { lock: LOCK, owner: Owner(owner), client: CLIENT, line: Line(line) };
        let latest = |beliefs: &Beliefs| [1, 2].map(|line| beliefs.latest(LOCK, CLIENT, Line(line)));
        assert_eq!(latest(&beliefs), [None, None]);
        // The first line may hold the lock under several of its client's owners.
        for entry in [entry(1, 1), entry(2, 2), entry(3, 1)] {
            assert!(!beliefs.believes(entry, Mode::Exclusive));
        }
        assert_eq!(latest(&beliefs), [Some(Owner(3)), Some(Owner(2))]);
        beliefs.disbelieves(LOCK, Owner(3), Mode::Exclusive);
        assert_eq!(latest(&beliefs), [Some(Owner(1)), Some(Owner(2))]);
        beliefs.disbelieves(LOCK, Owner(1), Mode::Exclusive);
        assert_eq!(latest(&beliefs), [Some(Owner(3)), Some(Owner(2))], "the last of its own that did");
        beliefs.started(CLIENT);
        assert_eq!(beliefs.holder(None), Some(CLIENT));
        beliefs.disbelieves(LOCK, Owner(2), Mode::Exclusive);
        assert_eq!((latest(&beliefs), beliefs.holder(None)), ([None, None], None));
    }

    #[test]
    fn a_client_that_crashes_takes_its_own_waiters_and_believers_with_it() {
        let other = Host(2);
        let entry = |client: Host| Entry { lock: LOCK, owner: Owner(client.0.into()), client, line: Line(1) };
        let mut beliefs = Beliefs::default();
        for client in [CLIENT, other] {
            beliefs.waits(entry(client));
        }
        assert_eq!(beliefs.waiter(None), Some(CLIENT));
        beliefs.crashed(CLIENT, |owner| owner == Owner(CLIENT.0.into()));
        assert_eq!(beliefs.waiter(None), Some(other));
        for client in [CLIENT, other] {
            beliefs.believes(entry(client), Mode::Exclusive);
        }
        beliefs.crashed(other, |owner| owner == Owner(other.0.into()));
        let is_believed = |client: Host| !beliefs.modes(LOCK, Owner(client.0.into())).is_empty();
        assert_eq!((is_believed(CLIENT), is_believed(other)), (true, false));
        assert_eq!((beliefs.holder(None), beliefs.waiter(None)), (Some(CLIENT), None));
    }
}
