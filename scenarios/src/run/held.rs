//! Derives events from a change of a lock's keys on one node, simulated or real.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

use lockstorm_world::time::Wall;

use crate::{
    judge::{
        history::{EventKind, GainCause, History, Host, Lock, LossCause, Mode, Owner, Party, SAME_END},
        object::{self, Counts, Grants, Holding, Keys, Known, Object, Value},
    },
    run::recorder::{Line, Sender},
};

/// The state of a lock on one node, with the last values of its keys.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) lock: Lock,
    pub(super) object: Rc<dyn Object>,
    pub(super) keys: Keys,
    pub(super) state: State,
    /// The names in the lock's queue, head first.
    pub(super) queue: Vec<String>,
}

impl Watched {
    /// Creates an entry for the lock with this name, without any state.
    pub(super) fn new(lock: Lock, object: Rc<dyn Object>, name: &str) -> Watched {
        let keys = object.keys(name);
        Watched { lock, object, keys, state: State::default(), queue: Vec::new() }
    }

    /// Reads the state from the keys at `now` of the node's clock, after a change that no client of
    /// this node made: data from a master, or from the node's disk.
    pub(super) fn adopt(&mut self, values: &[Value], now: Wall, names: &dyn Names) {
        self.state.adopt((self.lock, &*self.object), values, now.as_millis(), names);
    }

    /// Reads the state from the keys after a restart. Returns a loss for each hold that the node
    /// had before the crash and has not now.
    pub(super) fn restarted(&mut self, values: &[Value], now: Wall, names: &dyn Names) -> Vec<EventKind> {
        let before = self.state.clone();
        self.adopt(values, now, names);
        let gone = before.holders.iter().filter(|(key, _)| !self.state.holders.contains_key(*key));
        let lost = gone.map(|((_, mode), hold)| EventKind::Vanished {
            lock: self.lock,
            owner: hold.owner,
            how: LossCause::Crash,
            mode: *mode,
        });
        lost.collect()
    }

    /// Reads the state from the keys after a change, and returns the events that the change
    /// implies.
    pub(super) fn change(
        &mut self,
        values: &[Value],
        cause: &Cause<'_>,
        names: &dyn Names,
    ) -> Vec<EventKind> {
        self.state.change((self.lock, &*self.object), values, cause, names)
    }

    /// Returns the events that the promotion of this node from replica to master implies.
    ///
    /// A hold is lost if the group granted it, its lease has not ended by this node's clock, and
    /// this node does not have it. A hold has come back if this node has it in another state than
    /// the group reported last. The loss of a copy on a replica is no loss of the group. A latch's
    /// count on this node becomes the valid one.
    pub(super) fn promoted(
        &self,
        history: &History,
        node: Host,
        now: Wall,
        how: GainCause,
    ) -> Vec<EventKind> {
        let said = self.said_by_group(history, node);
        let lost = said.iter().filter(|(hold, said)| {
            said.count > 0 && said.lasts(now) && self.state.holds().all(|has| has != **hold)
        });
        let lock = self.lock;
        let lost = lost.map(|(&(owner, mode), _)| {
            let how = LossCause::Failover;
            EventKind::Vanished { lock, owner, how, mode }
        });
        lost.chain(self.other_than(&said, now, how)).chain(self.state.counted(lock)).collect()
    }

    /// Returns the holds that this master has in another, older state than its group reported last.
    pub(super) fn came_back(
        &self,
        history: &History,
        node: Host,
        now: Wall,
        how: GainCause,
    ) -> Vec<EventKind> {
        self.other_than(&self.said_by_group(history, node), now, how)
    }

    /// Returns the holds whose state on this node differs from the last one that the group
    /// reported.
    fn other_than(&self, said: &BTreeMap<(Owner, Mode), Said>, now: Wall, how: GainCause) -> Vec<EventKind> {
        // The keys of a semaphore do not name its holders. Only the node that granted the permits
        // knows them.
        if !self.object.promises().says_who_holds() {
            return Vec::new();
        }
        let has = self.state.holders.iter().map(|(key, hold)| {
            let until = hold.expires_ms.map(Wall::from_millis);
            ((hold.owner, key.1), Said { count: hold.count, until }, self.state.lapsed(key))
        });
        let is_another = |hold: &(Owner, Mode), has: &Said, lapsed: u32| {
            has.lasts(now) && said.get(hold).is_some_and(|said| has.is_another_than(said, lapsed))
        };
        let came_back = has.filter(|(hold, has, lapsed)| is_another(hold, has, *lapsed));
        let told = came_back.map(|((owner, mode), Said { count, until }, _)| {
            let lease_ms = until.map(|until| u64::try_from(until.as_millis() - now.as_millis()).unwrap_or(0));
            EventKind::Regained { lock: self.lock, owner, lease_ms, until, count, how, mode }
        });
        told.collect()
    }

    /// Returns the last reported state of each hold, from the events of all nodes of this node's
    /// group.
    fn said_by_group(&self, history: &History, node: Host) -> BTreeMap<(Owner, Mode), Said> {
        let authority = &history.lock(self.lock).authority;
        let Some(group) = authority.group_of(node) else { return BTreeMap::new() };
        let mut all: BTreeMap<(Owner, Mode), Said> = BTreeMap::new();
        let of_group = history.events.iter().enumerate().filter(|(_, event)| {
            authority.group_of(event.host) == Some(group) && event.kind.lock() == Some(self.lock)
        });
        for (number, event) in of_group {
            let Some((_, owner, mode)) = event.kind.hold() else { continue };
            let is_loss = matches!(event.kind, EventKind::Vanished { .. });
            if is_loss && !history.was_master(self.lock, event.host, number) {
                continue;
            }
            let said = all.entry((owner, mode)).or_default();
            match &event.kind {
                EventKind::Granted { count, until, .. } | EventKind::Regained { count, until, .. } => {
                    *said = Said { count: *count, until: *until };
                }
                EventKind::Extended { until, .. } => {
                    *said = Said { count: said.count.max(1), until: *until };
                }
                EventKind::Released { left, until, .. } => {
                    *said = Said { count: *left, until: until.or(said.until) };
                }
                EventKind::Vanished { .. } => *said = Said::default(),
                _ => {}
            }
        }
        all
    }

    /// Reads the queue from the keys, and returns an event if it changed.
    pub(super) fn queue(&mut self, values: &[Value], names: &dyn Names) -> Option<EventKind> {
        let queue = self.keys.queue(values);
        if queue == self.queue {
            return None;
        }
        self.queue = queue.to_vec();
        let waiters = queue.iter().map(|name| names.owner(self.lock, name, None)).collect();
        Some(EventKind::Queue { lock: self.lock, waiters })
    }
}

/// The last reported state of a hold: its number of levels and its end, by the clock of the node
/// that reported it.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    count: u32,
    until: Option<Wall>,
}

impl Said {
    /// Returns true if the lease has not ended at `now`.
    fn lasts(&self, now: Wall) -> bool {
        self.until.is_none_or(|until| until > now)
    }

    /// Returns true if the state on a node is another hold than the one that was reported last.
    /// No event reports the end of a single level. So up to `lapsed` levels may have ended since
    /// the report, and the hold is still the same.
    fn is_another_than(&self, said: &Said, lapsed: u32) -> bool {
        let ends_later = match (self.until, said.until) {
            (Some(has), Some(said)) => has > said + SAME_END,
            (has, said) => has.is_none() && said.is_some(),
        };
        let same_counts = self.count..=self.count.saturating_add(lapsed);
        !same_counts.contains(&said.count) || ends_later
    }
}

/// One owner's holds on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnerHolds {
    /// The owner to whom the node granted them. The name may be bound to another owner later; a
    /// release of this hold still belongs to the first owner.
    pub(super) owner: Owner,
    pub(super) count: u32,
    /// The expiry time in milliseconds, by the node's wall clock.
    pub(super) expires_ms: Option<i64>,
}

impl OwnerHolds {
    /// Returns true if the keys contain this hold unchanged.
    fn is(&self, hold: &object::Hold) -> bool {
        self.count == hold.count && self.expires_ms == hold.expires_ms
    }
}

/// The holders of the lock on one node, with the ends of their leases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The holds by the owner's name in the Redis keys and the mode.
    pub(super) holders: BTreeMap<(String, Mode), OwnerHolds>,
    /// The last fencing token.
    pub(super) token: Option<u64>,
    /// The number of free permits; `None` for kinds without permits.
    pub(super) left: Option<i64>,
    /// The number of count-downs until a latch opens; `None` for other kinds.
    pub(super) count: Option<u64>,
    /// The grants in the current window of a rate limiter.
    pub(super) grants: Grants,
    /// The number of levels in each field, for locks of different kinds in one key.
    pub(super) levels: Counts,
    /// The values of the keys when they were last read, for a lock whose levels have lease keys;
    /// otherwise empty. A key may remain after its time.
    values: Vec<Value>,
}

/// Returns the values as they are at `now_ms` of the node's clock, without the levels that time
/// alone has ended.
fn at(values: &[Value], now_ms: i64) -> Cow<'_, [Value]> {
    if !have_leases(values) {
        return Cow::Borrowed(values);
    }
    let mut values = values.to_vec();
    values.iter_mut().for_each(|value| value.lapse(now_ms));
    Cow::Owned(values)
}

/// Returns the values to keep until the next comparison.
fn kept(values: &[Value]) -> Vec<Value> {
    if have_leases(values) { values.to_vec() } else { Vec::new() }
}

fn have_leases(values: &[Value]) -> bool {
    values.iter().any(|value| !value.leases.is_empty())
}

/// The cause of a change of the keys.
pub(super) struct Cause<'a> {
    /// The keyspace event, or the command.
    pub(super) event: &'a str,
    /// The sender of the command, if a client sent it.
    pub(super) by: Option<&'a Sender>,
    /// The node that changed. The next field is the reading of its wall clock, in milliseconds.
    pub(super) node: Host,
    pub(super) wall_ms: i64,
}

/// Maps the names in the keys to owners.
pub(super) trait Names {
    /// Returns the owner with this name. The client `writer` has just written the name into a
    /// lock's keys.
    fn owner(&self, lock: Lock, name: &str, writer: Option<Host>) -> Owner;
    /// Returns the party whose command changed this hold: the hold's name in the keys and its
    /// owner.
    fn party(&self, lock: Lock, sender: &Sender, hold: (&str, Owner)) -> Party;
    /// Returns true if the command was sent on behalf of this owner.
    fn is_own(&self, owner: Owner, by: Party) -> bool;
    /// Returns the name of the owner for which a client currently acts.
    fn name_of(&self, client: Host) -> Option<Box<str>>;
}

impl State {
    fn adopt(
        &mut self,
        (lock, object): (Lock, &dyn Object),
        values: &[Value],
        now_ms: i64,
        names: &dyn Names,
    ) {
        let before = std::mem::take(self);
        let Holding { holds, token, left, count, grants, levels } =
            object.holding(&at(values, now_ms), &before.known(), None);
        let holders = holds.into_iter().map(|(key, object::Hold { count, expires_ms })| {
            let known = before.holders.get(&key).map(|hold| hold.owner);
            let owner = known.unwrap_or_else(|| names.owner(lock, &key.0, None));
            (key, OwnerHolds { owner, count, expires_ms })
        });
        let holders = holders.collect();
        *self = State { holders, token, left, count, grants, levels, values: kept(values) };
    }

    fn change(
        &mut self,
        (lock, object): (Lock, &dyn Object),
        values: &[Value],
        cause: &Cause<'_>,
        names: &dyn Names,
    ) -> Vec<EventKind> {
        let Cause { event, by, node, wall_ms } = *cause;
        // The only field of a lock's hash takes the key with it.
        let event = if event == "hexpired" { "expired" } else { event };
        let present = at(values, wall_ms);
        let mut before = std::mem::take(self);
        before.lapse(object, wall_ms);
        let (counted, granted) = (before.count, std::mem::take(&mut before.grants));
        let mut changes = Vec::new();
        // The keys show only the result of a whole command. If the node dropped a key, and the same
        // command then acquired the lock, the old holds are gone and the present ones are new, even
        // under the same name. With leases per owner, a command may also delete the remains of
        // another owner's ended lease before an event reports that end.
        let by_itself = matches!(event, "expired" | "evicted" | "flushed");
        if by_itself || object.leases_are_apart() {
            let expires = event == "expired" || !by_itself;
            let how = if expires { LossCause::Expired } else { how(event, None, false) };
            let gone = before.gone(object, &present, expires.then_some(wall_ms));
            changes.extend(gone.into_iter().map(|(owner, mode)| EventKind::Vanished {
                lock,
                owner,
                how,
                mode,
            }));
        }
        let name = by.and_then(|by| names.name_of(by.client));
        let Holding { mut holds, token, left, count: now_counted, grants, levels } =
            object.holding(&present, &before.known(), name.as_deref());
        // A reader's hold that is over counts until the node deletes its key, but only unchanged.
        // If a command left a level whose time is over, the reader does not hold that level.
        holds.retain(|key, hold| {
            let is_over = key.1 == Mode::Shared && hold.expires_ms.is_some_and(|at| at < wall_ms);
            !is_over || before.holders.get(key).is_some_and(|had| had.is(hold))
        });
        let lease_ms =
            |expires_ms: Option<i64>| expires_ms.map(|at| u64::try_from(at - wall_ms).unwrap_or(0));
        for (key, OwnerHolds { owner, count, .. }) in &before.holders {
            let (owner, mode, now) = (*owner, key.1, holds.get(key));
            let left = now.map_or(0, |now| now.count);
            if left >= *count {
                continue;
            }
            let by = by.map(|sender| names.party(lock, sender, (&key.0, owner)));
            changes.push(match by {
                Some(by) if names.is_own(owner, by) => {
                    let expires_ms = now.and_then(|now| now.expires_ms);
                    let (lease_ms, until) = (lease_ms(expires_ms), expires_ms.map(Wall::from_millis));
                    EventKind::Released { lock, owner, by, left, lease_ms, until, mode }
                }
                _ if left > 0 => continue,
                _ => EventKind::Vanished { lock, owner, how: how(event, by, !holds.is_empty()), mode },
            });
        }
        for (key, object::Hold { count, expires_ms }) in holds {
            let had = before.holders.get(&key).copied();
            let owner =
                had.map_or_else(|| names.owner(lock, &key.0, by.map(|by| by.client)), |hold| hold.owner);
            let (mode, until, lease_ms) = (key.1, expires_ms.map(Wall::from_millis), lease_ms(expires_ms));
            if had.is_none_or(|had| count > had.count) {
                changes.push(EventKind::Granted { lock, owner, lease_ms, until, count, token, mode });
            } else if had.is_some_and(|had| count == had.count && had.expires_ms != expires_ms) {
                let nobody = Party { client: node, owner: None };
                let by = by.map_or(nobody, |sender| names.party(lock, sender, (&key.0, owner)));
                changes.push(EventKind::Extended { lock, owner, by, lease_ms, until, mode });
            }
            self.holders.insert(key, OwnerHolds { owner, count, expires_ms });
        }
        (self.token, self.left, self.levels, self.values) = (token, left, levels, kept(values));
        for (_, passing) in grants.iter().filter(|(grant, _)| !granted.contains_key(*grant)) {
            let sender = by.map(|sender| sender.client);
            // The client with its own rate. The line of work that asked is unknown.
            let first = passing.client.as_ref().map(|id| Line::FIRST.owner_of(id));
            let owner = first.map(|name| names.owner(lock, &name, sender));
            let by = Party { client: sender.unwrap_or(node), owner };
            changes.push(EventKind::Passed { lock, by, permits: passing.permits });
        }
        (self.count, self.grants) = (now_counted, grants);
        if now_counted != counted.or(now_counted.map(|_| 0)) {
            changes.extend(self.counted(lock));
        }
        changes
    }

    /// Returns an event with the latch's count.
    fn counted(&self, lock: Lock) -> Option<EventKind> {
        self.count.map(|left| EventKind::Counted { lock, left })
    }

    /// Takes off the levels that time alone has ended since the keys were read. That is no release,
    /// and a reader with other levels keeps its hold.
    fn lapse(&mut self, object: &dyn Object, now_ms: i64) {
        if self.values.is_empty() {
            return;
        }
        let now = object.holding(&at(&self.values, now_ms), &self.known(), None).holds;
        for (key, hold) in &mut self.holders {
            if let Some(now) = now.get(key).filter(|_| key.1 == Mode::Shared) {
                hold.count = now.count;
            }
        }
    }

    /// Returns the number of a reader's levels that have ended, while its field still counts them.
    fn lapsed(&self, key: &(String, Mode)) -> u32 {
        let (name, mode) = key;
        let (Some(value), Some(hold), Mode::Shared) = (self.values.first(), self.holders.get(key), *mode)
        else {
            return 0;
        };
        // The field of a lock of several kinds also counts the levels that the owner holds alone.
        let alone = self.levels.get(name).and_then(|_| self.holders.get(&(name.clone(), Mode::Exclusive)));
        let alone = alone.map_or(0, |hold| hold.count);
        value.levels_of(name).saturating_sub(alone).saturating_sub(hold.count)
    }

    /// Removes and returns the holds that no client ended: the keys no longer contain them, or
    /// contain another number of levels or another expiry. With leases per owner, only the holds
    /// whose lease had ended when the node's clock showed `expired_at`. Returns the owners known
    /// from the grants, because the writer of a new name is not known here.
    fn gone(&mut self, object: &dyn Object, values: &[Value], expired_at: Option<i64>) -> Vec<(Owner, Mode)> {
        let now = object.holding(values, &self.known(), None).holds;
        let over = |hold: &OwnerHolds| match expired_at {
            Some(wall_ms) if object.leases_are_apart() => hold.expires_ms.is_some_and(|at| at < wall_ms),
            _ => true,
        };
        let is_left = |key: &(String, Mode), hold: &OwnerHolds| now.get(key).is_some_and(|now| hold.is(now));
        let gone = self.holders.extract_if(.., |key, hold| !is_left(key, hold) && over(hold));
        let gone: Vec<_> = gone.map(|((_, mode), hold)| (hold.owner, mode)).collect();
        if self.holders.is_empty() && !gone.is_empty() {
            *self = State::default();
        }
        gone
    }

    fn holds(&self) -> impl Iterator<Item = (Owner, Mode)> + '_ {
        self.holders.iter().map(|((_, mode), hold)| (hold.owner, *mode))
    }

    fn known(&self) -> Known {
        let counts = self.holders.iter().map(|((name, _), hold)| (name.clone(), hold.count));
        let alone = self.holders.iter().filter(|((_, mode), _)| *mode == Mode::Exclusive);
        let alone = alone.map(|((name, _), hold)| (name.clone(), hold.count)).collect();
        Known { counts: counts.collect(), alone, levels: self.levels.clone(), left: self.left }
    }

    /// Returns the earliest expiry time of the holds in milliseconds, by the node's wall clock.
    pub(super) fn first_expiry_ms(&self) -> Option<i64> {
        self.holders.values().filter_map(|hold| hold.expires_ms).min()
    }
}

fn how(event: &str, by: Option<Party>, replaced: bool) -> LossCause {
    match (event, by) {
        ("expired", _) => LossCause::Expired,
        ("evicted", _) => LossCause::Evicted,
        ("flushed", _) => LossCause::Flushed,
        (_, Some(by)) if replaced => LossCause::Overwritten(by),
        (_, Some(by)) => LossCause::Deleted(by),
        _ => LossCause::Expired,
    }
}

#[cfg(test)]
mod tests;
