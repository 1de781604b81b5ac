//! The locks of a node by keyspace events and by reads of their keys.
//!
//! A server sends events and replies on one connection, in the order in which it runs commands. So
//! a read that lies between two events has the key as it was between them.
//!
//! An event names the key and the kind of change. It names neither the sender nor the value. A
//! holder is known once its key was read. A holder that differs at the next read, without an event
//! that ended the first hold, was overwritten. FLUSHALL and SWAPDB cause no events: the counters of
//! INFO commandstats show them.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    capture::Unit,
    command::{Call, Command, Verb},
    engine::Audit,
    findings::{Findings, Kind, Place},
    locks::{End, Hold, Lock},
    names::length,
    node::Node,
    owners::is_redisson_owner,
};

/// The most keys of a node that are watched.
pub(super) const KEYS_MAX: usize = 10_000;

/// A key without an expiry that gets one within this time was set in two commands.
const TWO_STEPS_US: i64 = 1_000_000;

/// The replies to two reads of one expiry differ by less than this.
const NEAR_MS: i64 = 20;

/// The database and the name of a key.
pub(super) type Id = (u32, Box<[u8]>);

/// The part of an event in the life of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The key was written: as a hash, as a string, or as either.
    Writes(Option<bool>),
    /// Its expiry was set.
    Leases,
    /// Its expiry was removed.
    Persists,
    Ends(End),
    /// The key did not exist before the next event.
    IsNew,
    /// The event says nothing that others do not say.
    Nothing,
    /// The key is no lock, such as a counter: a semaphore or a latch.
    Foreign,
}

impl Effect {
    fn of(event: &[u8]) -> Effect {
        match event {
            b"set" => Effect::Writes(Some(false)),
            b"hset" | b"hincrby" | b"hincrbyfloat" | b"hdel" => Effect::Writes(Some(true)),
            b"rename_to" | b"move_to" | b"copy_to" | b"restore" => Effect::Writes(None),
            b"expire" => Effect::Leases,
            b"persist" => Effect::Persists,
            b"del" => Effect::Ends(End::Released),
            b"expired" => Effect::Ends(End::Expired),
            b"evicted" => Effect::Ends(End::Unknown),
            b"rename_from" | b"move_from" => Effect::Ends(End::Broken),
            b"new" => Effect::IsNew,
            b"overwritten" | b"type_changed" => Effect::Nothing,
            _ => Effect::Foreign,
        }
    }
}

/// A watched key.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Set for a hash, unset for a string; `None` until an event or TYPE says it.
    pub(super) is_hash: Option<bool>,
    /// Set once the key is a lock: a pattern names it, or its field is an owner of Redisson.
    is_lock: bool,
    /// Set for a key that was read and is none.
    is_foreign: bool,
    is_present: bool,
    /// The time of the event that created it; 0 if it is older than the audit.
    since_us: i64,
    /// The number of writes since the last read.
    writes: u64,
    /// The time of the last write or new expiry; 0 without one.
    write_us: i64,
    /// Set between a write and the expiry that the same command sets.
    is_fresh: bool,
    /// The last event that wrote it.
    grant: Option<Rc<Call>>,
    /// Set if the last read is outdated.
    pub(super) is_dirty: bool,
    /// Set while the replies of a read are awaited.
    pub(super) is_asked: bool,
    /// The number of the interval at which it was read last.
    pub(super) asked_at: u64,
    /// The number of events.
    epoch: u64,
    /// The reply to PTTL, and the number of events before it.
    ttl: Option<(i64, u64)>,
    /// The time of the first read without an expiry, and true once that was reported.
    bare: Option<(i64, bool)>,
    /// The count of flushes before the last read.
    flushes: Option<u64>,
    /// The number of events before a read that found it gone.
    absent: Option<u64>,
    /// The notice of its expired leases.
    expired: Option<usize>,
}

/// A hold that was absent at a read, without an event that ended it.
#[derive(Debug)]
struct Doubt {
    id: Id,
    owner: String,
    grant: Rc<Call>,
    found: Rc<Call>,
    /// True if another owner was in its place.
    is_replaced: bool,
    /// True if its lease was over.
    is_over: bool,
    /// The count of flushes while the hold was there.
    flushes: Option<u64>,
    at_us: i64,
}

/// The keys of a node.
#[derive(Debug)]
pub(super) struct Watched {
    node: usize,
    /// Set if patterns name the locks.
    is_named: bool,
    pub(super) keys: BTreeMap<Id, Seen>,
    doubts: Vec<Doubt>,
    /// The number of FLUSHALL, FLUSHDB and SWAPDB since the server's start; `None` if unknown.
    flushes: Option<u64>,
    /// The number of events.
    events: u64,
    /// The number of them that the node has not counted yet.
    pub(super) new_events: u64,
    /// Set when a key is not watched because there are too many, and once only.
    pub(super) is_full: bool,
    was_full: bool,
    /// Set if keys without a lock were dropped since the last interval began.
    is_swept: bool,
}

impl Watched {
    /// Begins with the locks that the audit has of this node, whose holds may have ended.
    pub(super) fn new(audit: &mut Audit, node: usize) -> Watched {
        let mut keys = BTreeMap::new();
        if let Some(node) = audit.nodes.get_mut(node) {
            node.is_gentle = true;
            node.doubt();
        }
        for (db, locks) in audit.nodes.get(node).into_iter().flat_map(|node| &node.locks) {
            for (key, lock) in locks.iter().filter(|(_, lock)| lock.hold.is_some()).take(KEYS_MAX) {
                let hold_us = lock.hold.as_ref().map_or(0, |hold| hold.since_us);
                let seen = Seen { is_lock: true, is_dirty: true, since_us: hold_us, ..Seen::default() };
                keys.insert((*db, key.clone()), seen);
            }
        }
        let is_named = !audit.settings.locks.is_empty();
        let (doubts, flushes) = (Vec::new(), None);
        Watched {
            node,
            is_named,
            keys,
            doubts,
            flushes,
            events: 0,
            new_events: 0,
            is_full: false,
            was_full: false,
            is_swept: false,
        }
    }

    /// Watches a key that SCAN has found.
    pub(super) fn found(&mut self, audit: &Audit, id: Id) {
        if self.keys.contains_key(&id) {
            return;
        }
        let Some(is_lock) = self.named(audit, &id.1) else { return };
        if self.has_room() {
            self.keys.insert(id, Seen { is_lock, is_dirty: true, ..Seen::default() });
        }
    }

    /// Returns true for a key that the user names as a lock; `None` if a read shows no owner of its
    /// kind.
    fn named(&self, audit: &Audit, key: &[u8]) -> Option<bool> {
        match audit.settings.patterns.kind(key) {
            None => Some(self.is_named),
            Some(kind) => kind.has_owner().then_some(true),
        }
    }

    fn has_room(&mut self) -> bool {
        if self.keys.len() >= KEYS_MAX && !std::mem::replace(&mut self.is_swept, true) {
            self.keys.retain(|_, seen| seen.is_present && !seen.is_foreign || seen.is_asked);
        }
        let has_room = self.keys.len() < KEYS_MAX;
        if !has_room && !std::mem::replace(&mut self.was_full, true) {
            self.is_full = true;
        }
        has_room
    }

    /// Takes an event on a key.
    pub(super) fn event(&mut self, audit: &mut Audit, id: Id, event: &[u8], at_us: i64) {
        self.events += 1;
        self.new_events += 1;
        let effect = Effect::of(event);
        if !self.keys.contains_key(&id) {
            let Some(is_lock) = self.named(audit, &id.1) else { return };
            // Redisson acquires by HINCRBY. Other hashes are many.
            let begins = is_lock && !matches!(effect, Effect::Foreign | Effect::Ends(_));
            if !(begins || event == b"hincrby") || !self.has_room() {
                return;
            }
            self.keys.insert(id.clone(), Seen { is_lock, ..Seen::default() });
        }
        let number = self.events;
        let Some(seen) = self.keys.get_mut(&id) else { return };
        seen.epoch += 1;
        if seen.is_foreign && !matches!(effect, Effect::Ends(_)) {
            return;
        }
        let call = Rc::new(call(number, at_us, &id, event, None));
        match effect {
            Effect::Writes(is_hash) => {
                if seen.is_present {
                    seen.writes += 1;
                } else {
                    (seen.is_present, seen.since_us, seen.writes) = (true, at_us, 0);
                }
                seen.is_hash = is_hash;
                (seen.is_fresh, seen.is_dirty, seen.write_us) = (true, true, at_us);
                seen.grant = Some(call);
            }
            Effect::Leases => {
                let is_renewal = !std::mem::take(&mut seen.is_fresh) && seen.is_present;
                (seen.is_present, seen.is_dirty, seen.bare, seen.write_us) = (true, true, None, at_us);
                if is_renewal && seen.is_lock {
                    self.renewed(audit, &id, &call);
                }
            }
            Effect::Persists => seen.is_dirty = true,
            Effect::Ends(end) => self.ended(audit, &id, end, &call),
            Effect::IsNew if seen.is_present => self.ended(audit, &id, End::Unknown, &call),
            Effect::IsNew | Effect::Nothing => {}
            Effect::Foreign => {
                (seen.is_foreign, seen.is_dirty) = (true, false);
                let node = audit.nodes.get_mut(self.node);
                let lock = node.and_then(|node| node.locks.get_mut(&id.0)?.get_mut(&id.1));
                if let Some(lock) = lock {
                    lock.ends(at_us, End::Unknown);
                }
            }
        }
    }

    /// Follows an expiry that was set without a write.
    fn renewed(&mut self, audit: &mut Audit, id: &Id, call: &Rc<Call>) {
        let Some((node, lock, findings, late)) = lock_of(audit, self.node, id) else { return };
        let Some(hold) = &lock.hold else { return };
        let place = Place { node, db: id.0, key: &id.1 };
        let (owner, grant, lease_ms) = (hold.owner.clone(), hold.grant.clone(), hold.lease_ms);
        // The next read corrects the length.
        let expires_ms = lease_ms.map(|lease| call.at_ms().saturating_add(lease));
        lock.last_us = call.at_us;
        let percent = lock.renews(call.at_us, expires_ms, true);
        let Some(percent) = percent.filter(|percent| *percent >= late) else { return };
        if let Some(finding) = lock.near_miss.and_then(|at| findings.list.get_mut(at)) {
            finding.times += 1;
            return;
        }
        let lease = length(lease_ms.unwrap_or_default().saturating_mul(1_000));
        let says = format!("renewed after {percent} % of its lease of {lease}");
        let parts = [(&grant, "granted it"), (call, "renewed it")];
        lock.near_miss = findings.add(Kind::NearMiss, place, &owner, call.at_us, says, &parts);
    }

    /// Follows an event after which the key does not exist.
    fn ended(&mut self, audit: &mut Audit, id: &Id, end: End, call: &Rc<Call>) {
        let Some(seen) = self.keys.get_mut(id) else { return };
        let was_present = std::mem::replace(&mut seen.is_present, false);
        let since_us = std::mem::take(&mut seen.since_us);
        let was_foreign = seen.is_foreign;
        (seen.writes, seen.write_us) = (0, 0);
        (seen.is_fresh, seen.is_dirty, seen.is_foreign) = (false, false, false);
        (seen.bare, seen.flushes, seen.ttl, seen.absent) = (None, None, None, None);
        if !seen.is_lock {
            return;
        }
        let Some((node, lock, findings, _)) = lock_of(audit, self.node, id) else { return };
        let place = Place { node, db: id.0, key: &id.1 };
        lock.last_us = call.at_us;
        let Some(hold) = &lock.hold else {
            // A hold between two reads: its owner is unknown.
            if was_present && !was_foreign {
                lock.figures.grants += 1;
                match end {
                    End::Released => lock.figures.releases += 1,
                    End::Expired => lock.figures.expiries += 1,
                    End::Broken | End::Unknown => lock.figures.broken += 1,
                }
                if since_us > 0 {
                    lock.figures.holds.add(call.at_us - since_us);
                }
            }
            return;
        };
        let (owner, grant, lease_ms) = (hold.owner.clone(), hold.grant.clone(), hold.lease_ms);
        let parts = [(&grant, "granted it"), (call, "ended it")];
        match end {
            End::Expired => match seen.expired.and_then(|at| findings.list.get_mut(at)) {
                Some(finding) => finding.times += 1,
                None => {
                    let lease = lease_ms.map(|ms| format!(" of {}", length(ms.saturating_mul(1_000))));
                    let says = format!(
                        "its lease{} ended before its owner released it: the owner died, or was late",
                        lease.unwrap_or_default()
                    );
                    seen.expired = findings.add(Kind::LeaseEnded, place, &owner, call.at_us, says, &parts);
                }
            },
            End::Broken => {
                let says = format!("{} took the key away", call.command.name());
                findings.add(Kind::Deleted, place, &owner, call.at_us, says, &parts);
            }
            End::Unknown => {
                let says = match call.command.word(0) {
                    b"evicted" => "the server evicted the key to free memory",
                    _ => "the key was created again, and no event ended the hold",
                };
                findings.add(Kind::Unexplained, place, &owner, call.at_us, says.to_owned(), &parts);
            }
            End::Released => {}
        }
        lock.ends(call.at_us, end);
    }

    /// Takes the type of a key.
    pub(super) fn is_of_type(&mut self, id: &Id, kind: &[u8]) {
        let Some(seen) = self.keys.get_mut(id) else { return };
        seen.is_asked = false;
        match kind {
            b"hash" => seen.is_hash = Some(true),
            b"string" | b"none" => seen.is_hash = Some(false),
            _ => seen.is_foreign = true,
        }
        seen.is_dirty = !seen.is_foreign;
    }

    /// Takes the reply to PTTL.
    pub(super) fn lives(&mut self, id: &Id, ms: i64) {
        let Some(seen) = self.keys.get_mut(id) else { return };
        seen.ttl = Some((ms, seen.epoch));
    }

    /// Forgets a key that the server does not let the audit read.
    pub(super) fn unread(&mut self, audit: &mut Audit, id: &Id, is_wrong_type: bool, at_us: i64) {
        let Some(seen) = self.keys.get_mut(id) else { return };
        if is_wrong_type {
            (seen.is_asked, seen.is_dirty, seen.is_hash) = (false, true, None);
            return;
        }
        let was_lock = seen.is_lock;
        self.keys.remove(id);
        if was_lock && let Some((_, lock, ..)) = lock_of(audit, self.node, id) {
            lock.ends(at_us, End::Unknown);
        }
    }

    /// Takes the owner and the levels of a key. `None` means a hash of several fields.
    pub(super) fn read(&mut self, audit: &mut Audit, id: &Id, value: Option<(String, u32)>, at_us: i64) {
        let (events, counter, node_at) = (self.events, self.flushes, self.node);
        let Some(seen) = self.keys.get_mut(id) else { return };
        seen.is_asked = false;
        let Some((ms, _)) = seen.ttl.take().filter(|(_, epoch)| *epoch == seen.epoch) else {
            // The key changed between the two replies.
            seen.is_dirty = true;
            return;
        };
        seen.is_dirty = false;
        let is_there = ms != -2;
        // A read may end the lease itself, between the two replies or with the first. Redis since
        // 7.2 and Valkey send this event after the reply. So a second read has to confirm it.
        let is_gone = !is_there || value.as_ref().is_some_and(|(owner, _)| owner.is_empty());
        let absent = std::mem::replace(&mut seen.absent, is_gone.then_some(seen.epoch));
        if is_gone && seen.is_present && absent != Some(seen.epoch) {
            seen.is_dirty = true;
            return;
        }
        if !seen.is_lock && is_there {
            let is_owner = |(owner, _): &(String, u32)| is_redisson_owner(owner.as_bytes());
            seen.is_lock = seen.is_hash == Some(true) && value.as_ref().is_some_and(is_owner);
            seen.is_foreign = !seen.is_lock;
        }
        seen.is_foreign |= is_there && value.is_none();
        if seen.is_foreign || !seen.is_lock {
            return;
        }
        let value = value.filter(|_| is_there);
        let found = value.as_ref().map(|(owner, _)| owner.as_str());
        let found = Rc::new(call(events, at_us, id, b"READ", found));
        let (had, writes) = (seen.is_present, std::mem::take(&mut seen.writes));
        (seen.is_present, seen.since_us) = (is_there, if had && is_there { seen.since_us } else { 0 });
        let before = std::mem::replace(&mut seen.flushes, counter.filter(|_| is_there));
        let Some((node, lock, findings, _)) = lock_of(audit, node_at, id) else { return };
        if let Some(hold) = &lock.hold
            && value.as_ref().is_none_or(|(owner, _)| *owner != hold.owner)
        {
            // A gap in the events may have hidden its end.
            let grant = hold.grant.clone();
            if let Some(master) = &hold.moved {
                let says = format!("{master} granted it, and the master in its place did not have it");
                let place = Place { node, db: id.0, key: &id.1 };
                let parts = [(&grant, "granted it"), (&found, "showed it gone")];
                findings.add(Kind::Unexplained, place, &hold.owner, at_us, says, &parts);
            } else if hold.is_sure {
                self.doubts.push(Doubt {
                    id: id.clone(),
                    owner: hold.owner.clone(),
                    grant,
                    found: found.clone(),
                    is_replaced: value.is_some(),
                    is_over: hold.expires_ms.is_some_and(|at| at <= found.at_ms()),
                    flushes: before,
                    at_us,
                });
            }
            let end = if hold.is_sure && value.is_some() { End::Broken } else { End::Unknown };
            lock.ends(at_us, end);
            seen.since_us = if value.is_some() { seen.write_us } else { 0 };
        }
        let Some((owner, levels)) = value else { return };
        let expires_ms = (ms >= 0).then(|| at_us.div_euclid(1_000).saturating_add(ms));
        match &mut lock.hold {
            Some(hold) => {
                (hold.is_sure, hold.levels, hold.moved) = (true, levels, None);
                let is_other =
                    hold.expires_ms.zip(expires_ms).is_none_or(|(had, at)| (at - had).abs() > NEAR_MS);
                if writes > 0 && seen.is_hash == Some(false) {
                    // Its owner set the key again.
                    lock.renews(seen.write_us, expires_ms, true);
                } else if is_other {
                    hold.expires_ms = expires_ms;
                    hold.lease_ms = expires_ms.map(|at| at - hold.set_us.div_euclid(1_000));
                }
            }
            None => {
                let is_redisson = seen.is_hash == Some(true) && is_redisson_owner(owner.as_bytes());
                let since_us = seen.since_us;
                let set_us = if seen.write_us > 0 { seen.write_us } else { at_us };
                let hold = Hold {
                    owner,
                    since_us,
                    set_us,
                    lease_ms: expires_ms.map(|at| at - set_us.div_euclid(1_000)),
                    expires_ms,
                    levels,
                    renewed: 0,
                    grant: seen.grant.clone().filter(|_| since_us > 0).unwrap_or_else(|| found.clone()),
                    is_sure: true,
                    moved: None,
                };
                lock.library = lock.library.or(is_redisson.then_some("Redisson"));
                lock.begins(hold, "");
                lock.figures.without_expiry += u64::from(expires_ms.is_none());
                seen.bare = None;
            }
        }
        lock.last_us = at_us;
        if ms == -1 {
            let place = Place { node, db: id.0, key: &id.1 };
            bare(seen, lock, place, &found, findings);
        }
    }

    /// Takes the number of commands that delete or exchange all keys, before the reads of an
    /// interval or `after` those of this interval. Decides the doubts.
    pub(super) fn flushes(&mut self, audit: &mut Audit, counter: Option<u64>, after: Option<u64>) {
        if counter != self.flushes {
            for seen in self.keys.values_mut().filter(|seen| seen.is_present) {
                seen.is_dirty = true;
                // The flush came before this read or after it.
                if after == Some(seen.asked_at) {
                    seen.flushes = None;
                }
            }
        }
        self.flushes = counter;
        self.is_swept &= after.is_some();
        for doubt in std::mem::take(&mut self.doubts) {
            let Doubt { id, owner, grant, found, is_replaced, is_over, flushes, at_us } = doubt;
            let Some((node, _, findings, _)) = lock_of(audit, self.node, &id) else { continue };
            let place = Place { node, db: id.0, key: &id.1 };
            // CONFIG RESETSTAT sets the counters to zero.
            let counters = flushes.zip(counter).filter(|(before, now)| before <= now);
            let was_flushed = counters.map(|(before, now)| before < now);
            let (kind, says) = match (was_flushed, is_replaced) {
                // An expired key is flushed without an event, too.
                (Some(true), _) if is_over => {
                    (Kind::Unexplained, "its lease ended, or all keys were flushed before")
                }
                (Some(true), _) => (
                    Kind::Flushed,
                    "FLUSHALL, FLUSHDB or SWAPDB ran, and its owner did not have it afterwards",
                ),
                (Some(false), true) => {
                    (Kind::Overwritten, "another owner is in its place, and no event ended the first hold")
                }
                (None, true) => (
                    Kind::Unexplained,
                    "another owner is in its place: it was overwritten, or all keys were flushed",
                ),
                (_, false) => (Kind::Unexplained, "the key was absent, and no event ended the hold"),
            };
            let parts = [(&grant, "granted it"), (&found, "showed it gone")];
            findings.add(kind, place, &owner, at_us, says.to_owned(), &parts);
        }
    }
}

/// Reports a hold that reads show without an expiry for a second.
fn bare(seen: &mut Seen, lock: &Lock, place: Place<'_>, found: &Rc<Call>, findings: &mut Findings) {
    let Some(hold) = &lock.hold else { return };
    let (first_us, is_reported) = seen.bare.get_or_insert((found.at_us, false));
    let lasted_us = found.at_us - *first_us;
    if *is_reported || lasted_us < TWO_STEPS_US {
        return;
    }
    *is_reported = true;
    let says =
        format!("held without an expiry for {} or longer: it stays if its holder dies", length(lasted_us));
    let parts = [(&hold.grant, "granted it"), (found, "showed it without an expiry")];
    findings.add(Kind::NoExpiry, place, &hold.owner, found.at_us, says, &parts);
}

/// Returns the name of the node, the lock, the findings, and the share of a late renewal.
fn lock_of<'a>(
    audit: &'a mut Audit,
    node: usize,
    (db, key): &Id,
) -> Option<(&'a str, &'a mut Lock, &'a mut Findings, i64)> {
    let Audit { nodes, findings, settings, .. } = audit;
    let Node { name, locks, now_us, .. } = nodes.get_mut(node)?;
    let lock = locks.entry(*db).or_default().entry(key.clone()).or_insert_with(|| Lock::new(*now_us));
    lock.is_proven = true;
    Some((name.as_str(), lock, findings, settings.late_percent))
}

/// Returns an event, or a read with its owner, in the form of a command.
fn call(number: u64, at_us: i64, (db, key): &Id, name: &[u8], owner: Option<&str>) -> Call {
    let words = [name, &key[..]].into_iter().chain(owner.map(str::as_bytes)).map(Box::from).collect();
    // The third word of a SET is a value, which is hashed even if it is a number.
    let command = Command { verb: Verb::Set, db: *db, words };
    Call { line: number, unit: Unit::Event, at_us, client: "".into(), command, script: Vec::new() }
}
