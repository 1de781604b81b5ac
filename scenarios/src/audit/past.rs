//! The changes of locks in a capture, and the history that checkers judge.
//!
//! MONITOR shows the nodes' side: grants, extensions, releases and losses. It shows no replies, so
//! the history has no beliefs of clients.

use std::collections::BTreeMap;

use lockstorm_world::time::{True, Wall};

use super::{
    command::Verb,
    follow::Act,
    locks::{Hold, Lock as Locked},
    names::{Names, key},
};
use crate::judge::history::{
    Authority, Ended, Event, EventKind, Header, History, Host, HostInfo, HostKind, Lock, LockInfo, LockKind,
    LossCause, Mode, Owner, Party,
};

/// The most changes that are kept.
const CHANGES_MAX: usize = 2_000_000;

/// The most hosts and locks of a history, whose numbers have 16 bits.
const NAMES_MAX: usize = 60_000;

/// The identity of a lock: the node, the database and the key.
type Id = (String, u32, Box<[u8]>);

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Granted { levels: u32 },
    Extended,
    Released { left: u32 },
    Expired,
    Flushed,
    Deleted,
    Overwritten,
}

/// A change of a lock.
#[derive(Debug, Clone)]
struct Change {
    at_us: i64,
    id: usize,
    what: What,
    owner: String,
    /// The client that holds the lock, by its address.
    client: Box<str>,
    /// The sender of the command, and the owner that it names.
    by: Box<str>,
    by_owner: Option<String>,
    expires_ms: Option<i64>,
}

/// The changes of all locks of an audit.
#[derive(Debug, Default)]
pub(super) struct Past {
    ids: BTreeMap<Id, usize>,
    changes: Vec<Change>,
    /// The hold of each lock after the last change.
    holds: BTreeMap<usize, Hold>,
    is_full: bool,
}

impl Past {
    /// Records the changes of a lock by a call. `before` is its hold before the call.
    pub(super) fn changed(&mut self, act: &Act<'_>, before: Option<&Hold>, lock: &Locked) {
        let id = (act.place.node.to_owned(), act.place.db, Box::from(act.place.key));
        let next = self.ids.len();
        let id = *self.ids.entry(id).or_insert(next);
        let known = self.holds.get(&id).cloned();
        if let Some(known) = known.filter(|known| !is_same(before, known)) {
            let at_us =
                known.expires_ms.map_or(act.call.at_us, |at| at.saturating_mul(1_000).min(act.call.at_us));
            self.push(id, at_us, What::Expired, &known, act);
            self.holds.remove(&id);
        }
        if let Some(before) = before.filter(|_| !self.holds.contains_key(&id)) {
            self.push(id, before.since_us, What::Granted { levels: before.levels }, before, act);
        }
        let (at_us, now) = (act.call.at_us, lock.hold.as_ref());
        match (before, now) {
            (Some(before), Some(now)) if is_same(Some(now), before) => {
                if now.levels > before.levels {
                    self.push(id, at_us, What::Granted { levels: now.levels }, now, act);
                } else if now.levels < before.levels {
                    self.push(id, at_us, What::Released { left: now.levels }, now, act);
                } else if now.expires_ms != before.expires_ms {
                    self.push(id, at_us, What::Extended, now, act);
                }
            }
            (Some(before), None) => self.push(id, at_us, ending(act, before), before, act),
            (Some(before), Some(_)) => self.push(id, at_us, What::Overwritten, before, act),
            (None, _) => {}
        }
        if let Some(now) = now.filter(|now| !is_same(before, now)) {
            self.push(id, at_us, What::Granted { levels: now.levels }, now, act);
        }
        match now {
            Some(now) => _ = self.holds.insert(id, now.clone()),
            None => _ = self.holds.remove(&id),
        }
    }

    fn push(&mut self, id: usize, at_us: i64, what: What, hold: &Hold, act: &Act<'_>) {
        self.is_full |= self.changes.len() >= CHANGES_MAX;
        if self.is_full {
            return;
        }
        let (owner, client) = (hold.owner.clone(), hold.grant.client.clone());
        let (by, by_owner) = (act.call.client.clone(), act.owner.clone());
        self.changes.push(Change {
            at_us,
            id,
            what,
            owner,
            client,
            by,
            by_owner,
            expires_ms: hold.expires_ms,
        });
    }

    /// Returns the history of the locks, from `first_us` to `end_us`.
    pub(super) fn history(&self, names: Names, first_us: i64, end_us: i64) -> History {
        let mut ids: Vec<(&Id, usize)> = self.ids.iter().map(|(id, at)| (id, *at)).collect();
        ids.sort_by_key(|(_, at)| *at);
        ids.truncate(NAMES_MAX);
        let mut hosts: Vec<HostInfo> = Vec::new();
        let mut places: BTreeMap<String, Host> = BTreeMap::new();
        let mut host = |name: &str, kind: HostKind| {
            if let Some(host) = places.get(name) {
                return *host;
            }
            // All further clients share the last number.
            let at = hosts.len().min(NAMES_MAX);
            let host = Host(u16::try_from(at).unwrap_or(u16::MAX));
            if at == hosts.len() {
                hosts.push(HostInfo::new(name, kind));
            }
            places.insert(name.to_owned(), host);
            host
        };
        let nodes: Vec<Host> = ids.iter().map(|(id, _)| host(&id.0, HostKind::Node)).collect();
        let clients: Vec<(Host, Host)> = self
            .changes
            .iter()
            .map(|one| (host(&one.client, HostKind::Client), host(&one.by, HostKind::Client)))
            .collect();
        let has_several = ids.iter().any(|(id, _)| id.0 != ids[0].0.0);
        let locks = ids.iter().zip(&nodes).map(|((id, _), node)| lock_info(id, *node, has_several)).collect();
        let end = instant(end_us.max(first_us), first_us);
        let mut header = Header::new("audit", hosts, locks, end);
        header.about = "The locks of a server, rebuilt from its commands.".into();
        header.engine = "real".into();
        if self.is_full {
            header.ended = Ended::Early("the audit keeps no more changes".into());
        }
        let mut history = History::new(header);
        let mut events = Vec::new();
        for (change, (client, by)) in self.changes.iter().zip(clients) {
            let Some(node) = nodes.get(change.id) else { continue };
            let owner = history.owner(&names.value(&change.owner), client);
            let named = change.by_owner.as_ref().map(|name| history.owner(&names.value(name), by));
            let party = Party { client: by, owner: named };
            let kind = event(change, owner, party, first_us);
            events.push(Event { at: instant(change.at_us, first_us), host: *node, kind });
        }
        events.sort_by_key(|event| event.at);
        history.events = events;
        history
    }
}

/// Returns true if two readings show one hold, which a call may have extended.
fn is_same(one: Option<&Hold>, other: &Hold) -> bool {
    one.is_some_and(|one| one.owner == other.owner && one.since_us == other.since_us)
}

/// Returns the way in which a call ended a hold.
fn ending(act: &Act<'_>, hold: &Hold) -> What {
    let is_own = match &act.owner {
        Some(owner) => *owner == hold.owner,
        None => act.call.client == hold.grant.client,
    };
    match act.call.command.verb {
        Verb::FlushAll | Verb::FlushDb => What::Flushed,
        _ if is_own => What::Released { left: 0 },
        _ => What::Deleted,
    }
}

fn instant(at_us: i64, first_us: i64) -> True {
    True::from_micros((at_us - first_us).max(0))
}

fn lock_info((node, db, name): &Id, host: Host, has_several: bool) -> LockInfo {
    let name = key(name);
    let db = if *db == 0 { String::new() } else { format!(" in database {db}") };
    let node = if has_several { format!(" on {node}") } else { String::new() };
    LockInfo {
        name: format!("{name}{db}{node}").into(),
        kind: LockKind::Exclusive,
        keys: vec![name.into()],
        lasting_keys: Vec::new(),
        passing_keys: Vec::new(),
        authority: Authority::group([host]),
    }
}

fn event(change: &Change, owner: Owner, by: Party, first_us: i64) -> EventKind {
    let lock = Lock(u16::try_from(change.id).unwrap_or(u16::MAX));
    let lease_ms =
        change.expires_ms.map(|at| u64::try_from(at - change.at_us.div_euclid(1_000)).unwrap_or(0));
    let until = change.expires_ms.map(|at| Wall::from_micros(at.saturating_mul(1_000) - first_us));
    let mode = Mode::Exclusive;
    match change.what {
        What::Granted { levels: count } => {
            EventKind::Granted { lock, owner, lease_ms, until, count, token: None, mode }
        }
        What::Extended => EventKind::Extended { lock, owner, by, lease_ms, until, mode },
        What::Released { left: 0 } => {
            EventKind::Released { lock, owner, by, left: 0, lease_ms: None, until: None, mode }
        }
        What::Released { left } => EventKind::Released { lock, owner, by, left, lease_ms, until, mode },
        What::Expired => EventKind::Vanished { lock, owner, how: LossCause::Expired, mode },
        What::Flushed => EventKind::Vanished { lock, owner, how: LossCause::Flushed, mode },
        What::Deleted => EventKind::Vanished { lock, owner, how: LossCause::Deleted(by), mode },
        What::Overwritten => EventKind::Vanished { lock, owner, how: LossCause::Overwritten(by), mode },
    }
}
