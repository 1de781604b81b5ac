//! Locks that several clients may hold at a time, and latches: the objects of a node by their keys.
//!
//! A call makes a key an object's by the commands on it and by the channel that it names, or a
//! pattern of the user does. Scripts show their effects, so no shadow copy is needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    acts::Acts,
    command::Call,
    findings::{Findings, Place},
    latch::{self, Latch},
    locks::{Figures, IDLE_US, LOCKS_MAX, Lock},
    names::Names,
    patterns::{self, Patterns},
    queue::Queues,
    read_write::{self, ReadWrite},
    semaphore::{self, Semaphore},
};

/// The most latches of one connection whose signs of life are followed.
const SUBSCRIBED_MAX: usize = 100;

/// The state of an object.
#[derive(Debug)]
pub(super) enum State {
    ReadWrite(ReadWrite),
    Semaphore(Semaphore),
    Latch(Latch),
}

/// An object, with its figures.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) lock: Lock,
    state: State,
}

impl Object {
    fn new(state: State, at_us: i64) -> Object {
        Object { lock: Lock::new(at_us), state }
    }

    /// Returns the kind in words.
    pub(super) fn kind(&self) -> &'static str {
        match self.state {
            State::ReadWrite(_) => "read-write lock",
            State::Semaphore(_) => "semaphore",
            State::Latch(_) => "latch",
        }
    }

    fn is_held(&self, now_us: i64) -> bool {
        match &self.state {
            State::ReadWrite(lock) => lock.is_held(),
            State::Semaphore(semaphore) => semaphore.is_held(),
            State::Latch(latch) => latch.is_held(now_us),
        }
    }

    /// Returns the holders in words, and the time at which the key expires.
    pub(super) fn holder(&self, names: Names) -> (Option<String>, Option<i64>) {
        match &self.state {
            State::ReadWrite(lock) => {
                let (holders, expires_ms) = lock.holders();
                let holders: Vec<&str> = holders.collect();
                let shown = match holders.as_slice() {
                    [] => return (None, None),
                    [one] => names.value(one),
                    several => format!("{} holders", several.len()),
                };
                (Some(shown), expires_ms)
            }
            State::Semaphore(semaphore) => {
                let shown = semaphore.taken().filter(|taken| *taken > 0).map(|taken| match taken {
                    1 => "1 permit".to_owned(),
                    _ => format!("{taken} permits"),
                });
                (shown, None)
            }
            State::Latch(latch) => {
                (latch.count().filter(|count| *count > 0).map(|count| format!("count {count}")), None)
            }
        }
    }

    /// Returns true if [`Object::holder`] names a holder whose lease is not over.
    pub(super) fn is_held_at(&self, now_ms: i64) -> bool {
        match &self.state {
            State::ReadWrite(lock) => lock.is_held() && lock.holders().1.is_none_or(|at| at >= now_ms),
            State::Semaphore(semaphore) => semaphore.taken().is_some_and(|taken| taken > 0),
            State::Latch(latch) => latch.count().is_some_and(|count| count > 0),
        }
    }

    /// Returns the number of waiting clients. Those of a latch have subscribed to its end.
    pub(super) fn waiters(&self, now_us: i64) -> usize {
        let subscribed = if let State::Latch(latch) = &self.state { latch.waiters(now_us) } else { 0 };
        self.lock.waiters(now_us) + subscribed
    }

    fn doubt(&mut self) {
        self.lock.forget_waiters();
        match &mut self.state {
            State::ReadWrite(lock) => lock.doubt(),
            State::Semaphore(semaphore) => semaphore.doubt(),
            State::Latch(latch) => latch.doubt(),
        }
    }

    fn follow(&mut self, place: Place<'_>, acts: &Acts<'_>, findings: &mut Findings) {
        let call = acts.call;
        self.lock.last_us = call.at_us;
        let is_script = call.command.verb.calls_script();
        if is_script && acts.has_prefix(b"redisson_") {
            self.lock.library = Some("Redisson");
        }
        match &mut self.state {
            State::ReadWrite(lock) if is_script => lock.follow(&mut self.lock, place, acts, findings),
            State::ReadWrite(lock) => lock.commanded(&mut self.lock, place, call, findings),
            State::Semaphore(own) if is_script => own.follow(&mut self.lock, place, acts, findings),
            State::Semaphore(own) => own.commanded(&mut self.lock, place, call, findings),
            State::Latch(latch) if is_script => latch.follow(&mut self.lock, place, acts),
            State::Latch(latch) => latch.commanded(call),
        }
    }
}

/// The database and the key of an object.
type Id = (u32, Box<[u8]>);

/// The objects and the queues of a node.
#[derive(Debug, Default)]
pub(super) struct Objects {
    objects: BTreeMap<u32, BTreeMap<Box<[u8]>, Object>>,
    pub(super) queues: Queues,
    /// The latches for whose ends a connection waits, by its address.
    subscribers: BTreeMap<Box<str>, Vec<Id>>,
    count: usize,
    /// The time at which idle objects were dropped.
    swept_us: i64,
    /// The objects that were dropped, and their figures.
    pub(super) dropped: (u64, Figures),
}

impl Objects {
    pub(super) fn has(&self, db: u32, key: &[u8]) -> bool {
        self.get(db, key).is_some()
    }

    pub(super) fn get(&self, db: u32, key: &[u8]) -> Option<&Object> {
        self.objects.get(&db)?.get(key)
    }

    /// Returns the objects with their databases and keys.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &[u8], &Object)> {
        self.objects.iter().flat_map(|(db, of_db)| of_db.iter().map(|(key, object)| (*db, &**key, object)))
    }

    /// Makes all states unsure: commands are missing that may have changed them.
    pub(super) fn doubt(&mut self) {
        self.queues.clear();
        self.subscribers.clear();
        self.objects.values_mut().flat_map(BTreeMap::values_mut).for_each(Object::doubt);
    }

    /// Follows a call on the objects that it concerns, some of which it may make. `is_wanted` says
    /// which keys are audited.
    pub(super) fn follow(
        &mut self,
        node: &str,
        acts: &Acts<'_>,
        named: &Patterns,
        is_wanted: impl Fn(&[u8]) -> bool,
        findings: &mut Findings,
    ) {
        self.queues.follow(node, acts, &is_wanted, findings);
        let command = &acts.call.command;
        let (mut keys, mut known) = (Vec::new(), BTreeSet::new());
        for key in command.keys() {
            if self.has(command.db, key) && known.insert((command.db, &**key)) {
                keys.push((command.db, &**key));
            }
        }
        for (db, key) in acts.keys() {
            let is_its = self.has(db, key) || is_wanted(key) && self.begins(db, key, acts, named);
            if is_its && known.insert((db, key)) {
                keys.push((db, key));
            }
        }
        for (db, key) in keys {
            let Some(object) = self.objects.get_mut(&db).and_then(|objects| objects.get_mut(key)) else {
                continue;
            };
            object.follow(Place { node, db, key }, acts, findings);
        }
    }

    /// Makes a key an object's if the call does. Returns true then.
    fn begins(&mut self, db: u32, key: &[u8], acts: &Acts<'_>, named: &Patterns) -> bool {
        let call = acts.call;
        if !call.command.verb.calls_script() || call.script.is_empty() {
            return false;
        }
        let state = match named.kind(key) {
            Some(patterns::Kind::Token | patterns::Kind::Hash | patterns::Kind::None) => return false,
            Some(patterns::Kind::ReadWrite) if read_write::begins(&acts.on(db, key), true) => {
                State::ReadWrite(ReadWrite::default())
            }
            Some(patterns::Kind::Semaphore) => State::Semaphore(Semaphore::default()),
            Some(patterns::Kind::Latch) => State::Latch(Latch::default()),
            Some(patterns::Kind::ReadWrite) => return false,
            None if read_write::begins(&acts.on(db, key), false) => State::ReadWrite(ReadWrite::default()),
            None => {
                // The first key is the object's, and the channel has its name.
                if call.command.keys().first().is_none_or(|first| **first != *key) {
                    return false;
                }
                let mut words = call.command.words.iter().skip(4);
                let of = |word: &[u8], channel: &[u8]| {
                    word.strip_prefix(channel).is_some_and(|rest| names(rest, key))
                };
                let found = words.find_map(|word| {
                    if of(word, semaphore::CHANNEL) {
                        return Some(State::Semaphore(Semaphore::default()));
                    }
                    let inner = word.strip_prefix(latch::CHANNEL).and_then(|rest| rest.strip_suffix(b"}"));
                    (inner == Some(key)).then(|| State::Latch(Latch::default()))
                });
                let Some(state) = found else { return false };
                state
            }
        };
        self.insert(db, key, state, call.at_us)
    }

    fn insert(&mut self, db: u32, key: &[u8], state: State, at_us: i64) -> bool {
        if self.count >= LOCKS_MAX && at_us.saturating_sub(self.swept_us) > IDLE_US / 10 {
            self.swept_us = at_us;
            let dropped = &mut self.dropped;
            for objects in self.objects.values_mut() {
                objects.retain(|_, object| {
                    let is_kept = object.is_held(at_us) || at_us - object.lock.last_us < IDLE_US;
                    if !is_kept {
                        dropped.0 += 1;
                        dropped.1.join(&object.lock.figures);
                    }
                    is_kept
                });
            }
            self.count = self.objects.values().map(BTreeMap::len).sum();
        }
        if self.count >= LOCKS_MAX {
            return false;
        }
        self.count += 1;
        self.objects.entry(db).or_default().insert(key.into(), Object::new(state, at_us));
        true
    }

    /// Follows a subscription to the end of a latch.
    pub(super) fn subscribes(&mut self, call: &Rc<Call>, is_wanted: impl Fn(&[u8]) -> bool) {
        let db = call.command.db;
        let ends = call.command.name().contains("UNSUBSCRIBE");
        if ends && call.command.words.len() == 1 {
            self.leaves(&call.client);
        }
        for channel in call.command.words.iter().skip(1) {
            let key = channel.strip_prefix(latch::CHANNEL).and_then(|rest| rest.strip_suffix(b"}"));
            let Some(key) = key.filter(|key| is_wanted(key)) else { continue };
            // A connection that subscribes may have another database than the one that counts.
            let db =
                self.objects.iter().find(|(_, objects)| objects.contains_key(key)).map_or(db, |(db, _)| *db);
            if !self.has(db, key)
                && (ends || !self.insert(db, key, State::Latch(Latch::default()), call.at_us))
            {
                continue;
            }
            let object = self.objects.get_mut(&db).and_then(|objects| objects.get_mut(key));
            let Some(Object { state: State::Latch(latch), .. }) = object else { continue };
            if ends {
                latch.leaves(&call.client);
            } else if latch.subscribes(call) {
                let own = self.subscribers.entry(call.client.clone()).or_default();
                if own.len() < SUBSCRIBED_MAX && !own.iter().any(|(of, known)| *of == db && **known == *key) {
                    own.push((db, key.into()));
                }
            }
        }
    }

    /// Notes that a connection still sends commands, if it waits for a latch.
    pub(super) fn hears(&mut self, client: &[u8], at_us: i64, name: &[u8]) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(client) = std::str::from_utf8(client).ok() else { return };
        let Some(own) = self.subscribers.get_mut(client) else { return };
        if [&b"quit"[..], b"reset"].iter().any(|end| name.eq_ignore_ascii_case(end)) {
            return self.leaves(client);
        }
        let is_ping = name.eq_ignore_ascii_case(b"ping");
        let objects = &mut self.objects;
        own.retain(|(db, key)| {
            let object = objects.get_mut(db).and_then(|objects| objects.get_mut(key));
            match object {
                Some(Object { state: State::Latch(latch), .. }) => latch.hears(client, at_us, is_ping),
                _ => false,
            }
        });
        if own.is_empty() {
            self.subscribers.remove(client);
        }
    }

    /// Ends the subscriptions of a connection.
    fn leaves(&mut self, client: &str) {
        for (db, key) in self.subscribers.remove(client).unwrap_or_default() {
            let object = self.objects.get_mut(&db).and_then(|objects| objects.get_mut(&key));
            if let Some(Object { state: State::Latch(latch), .. }) = object {
                latch.leaves(client);
            }
        }
    }

    /// Follows a FLUSHALL or FLUSHDB.
    pub(super) fn flush(&mut self, node: &str, only: Option<u32>, call: &Rc<Call>, findings: &mut Findings) {
        self.queues.clear();
        let acts = Acts::of(call);
        for (db, objects) in self.objects.iter_mut().filter(|(db, _)| only.is_none_or(|only| only == **db)) {
            for (key, object) in objects {
                object.follow(Place { node, db: *db, key }, &acts, findings);
            }
        }
    }

    /// Ends the audit: holds expire, and latches are judged.
    pub(super) fn finish(&mut self, node: &str, now_us: i64, findings: &mut Findings) {
        for (db, objects) in &mut self.objects {
            for (key, object) in objects {
                let place = Place { node, db: *db, key };
                match &mut object.state {
                    State::ReadWrite(lock) => lock.lapse(&mut object.lock, now_us.div_euclid(1_000)),
                    State::Latch(latch) => latch.finish(place, now_us, findings),
                    State::Semaphore(_) => {}
                }
            }
        }
    }
}

/// Returns true if the rest of a channel's name is that of a key, which has braces if the key has
/// none.
fn names(rest: &[u8], key: &[u8]) -> bool {
    let inner = rest.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
    rest == key || inner == Some(key)
}
