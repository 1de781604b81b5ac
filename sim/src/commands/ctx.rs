//! What a running command sees: the data with expiry already applied, the time frozen, and a place
//! to report effects.

use bytes::Bytes;

use super::{Error, Wait};
use crate::{
    durability::Disk,
    effect::{Changer, Class, Effects, PropagateTo, Publication, Signal, Touch},
    env::Env,
    event::ConnId,
    keyspace::{Db, Draw, Entry, ExpiryRule, Found, Kind, Place, Typed, Usage, Value},
    node::{
        Node,
        clients::{Blocked, BlockedOn, Session},
        expiry::Purpose,
    },
    resp::{Protocol, Reply},
    script::ScriptErrors,
    time::Monotonic,
};

/// On whose behalf a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client sent it.
    Client,
    /// EXEC runs it.
    Exec,
    /// A script calls it.
    Script,
    /// The master's stream, or the append-only file, repeats it.
    Replication,
}

bitflags::bitflags! {
    /// Which side effects a lookup of a key does not have, named as Redis's `LOOKUP_*` flags.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Lookup: u8 {
        /// The LRU or LFU data of the key stays as it is.
        const NO_TOUCH = 1;
        /// It counts neither as a hit nor as a miss.
        const NO_STATS = 1 << 1;
        /// A miss emits no keyspace event `keymiss`.
        const NO_NOTIFY = 1 << 2;
        /// The key is about to be written: neither counted nor notified, and an expired key is
        /// deleted on a writable replica, too.
        const WRITE = 1 << 3;
        /// No side effect at all, for a command that comes by the key without being asked for it
        /// (SCAN, KEYS).
        const PASSIVE = Self::NO_TOUCH.bits() | Self::NO_STATS.bits() | Self::NO_NOTIFY.bits();
        /// For a command that inspects the server rather than the data (OBJECT): it is counted
        /// only.
        const INSPECT = Self::NO_TOUCH.bits() | Self::NO_NOTIFY.bits();
    }
}

/// The context of one command. Scripts and transactions run several commands with one context each,
/// over the same effects.
pub struct Ctx<'a> {
    /// The node, for commands that are about it; data is reached through the methods here.
    pub node: &'a mut Box<Node>,
    /// Time and PRNG.
    pub env: &'a mut Env,
    /// What was done so far in this batch.
    pub effects: &'a mut Effects,
    /// The connection it runs for.
    pub conn: ConnId,
    /// The database it works on.
    pub db: usize,
    /// On whose behalf.
    pub origin: Origin,
    /// The wall clock in milliseconds, frozen for the whole batch: what keys expire by.
    pub now_ms: i64,
    /// Where it is propagated.
    pub(super) to: PropagateTo,
    /// The commands that are propagated instead of the one that was sent.
    pub(super) rewritten: Option<Vec<Vec<Bytes>>>,
    /// The errors in the reply of a script; other commands have one at most.
    pub(super) script_errors: Option<ScriptErrors>,
    /// Set when the command wants to wait.
    pub(super) block: Option<Blocked>,
    /// The key that is ready, when a command that waits is run again for it.
    pub(super) ready: Option<Bytes>,
    /// What it takes from there is the rest of a push, not a change of its own.
    pushed_to: bool,
    /// A server has written the reply by now.
    replied: bool,
}

impl<'a> Ctx<'a> {
    /// A context for a command of `conn`, which works on database `db`.
    pub fn new(
        node: &'a mut Box<Node>,
        env: &'a mut Env,
        effects: &'a mut Effects,
        conn: ConnId,
        db: usize,
        origin: Origin,
        now_ms: i64,
    ) -> Ctx<'a> {
        Ctx {
            node,
            env,
            effects,
            conn,
            db,
            origin,
            now_ms,
            to: PropagateTo::All,
            rewritten: None,
            script_errors: None,
            block: None,
            ready: None,
            pushed_to: false,
            replied: false,
        }
    }

    /// The context for a command that was blocked, now that `key` is ready.
    pub fn woken_by(mut self, key: Bytes) -> Ctx<'a> {
        self.ready = Some(key);
        self
    }

    /// The connection's session.
    ///
    /// # Panics
    /// When the connection is gone: commands only run for live ones.
    pub fn session(&mut self) -> &mut Session {
        self.node.clients.sessions.get_mut(self.conn).expect("commands run for live connections")
    }

    /// The wall clock in milliseconds, from which commands compute absolute times. It may advance
    /// within a batch; see [`Env::clock`](crate::env::Env::clock).
    pub fn wall_ms(&self) -> i64 {
        self.env.wall.as_millis()
    }

    /// Writes one of the node's own files: to its path, or where there is no machine around the
    /// node to its own disk, which `keep` does.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(super) fn write_file(
        &mut self,
        path: &str,
        file: Bytes,
        keep: impl FnOnce(&mut Disk, Bytes),
    ) -> Result<(), String> {
        let disk = &mut self.node.persistence.disk;
        match &self.env.files {
            Some(files) => {
                files.write(path, &String::from_utf8_lossy(&file)).map_err(|error| error.to_string())
            }
            None => match disk.fault {
                Some(fault) => Err(fault.to_string()),
                None => {
                    keep(disk, file);
                    Ok(())
                }
            },
        }
    }

    /// The selected database, raw: expired keys are still in it.
    pub fn raw_db(&mut self) -> &mut Db {
        &mut self.node.dbs[self.db]
    }

    /// Which keys are past their time.
    pub fn expiry_rule(&self) -> ExpiryRule {
        self.node.config.expiry_rule(self.now_ms)
    }

    /// Where a live key is. One that has expired is deleted, where that is for this node to do, and
    /// hidden otherwise.
    fn find_for(&mut self, key: &[u8], purpose: Purpose) -> Option<Place> {
        // The master's own stream decides for itself when a key is gone.
        if self.origin == Origin::Replication {
            return self.node.dbs[self.db].find(key);
        }
        match self.node.dbs[self.db].find_by(key, self.expiry_rule()) {
            Found::Live(place) => Some(place),
            Found::Missing => None,
            Found::Expired => {
                if self.node.deletes_expired(purpose) {
                    let key = Bytes::copy_from_slice(key);
                    self.node.expire(self.env, self.effects, self.db, key);
                }
                None
            }
        }
    }

    /// The place of a live key, with the side effects of a lookup that its flags leave on; the
    /// touch is the caller's.
    fn lookup_place(&mut self, key: &[u8], flags: Lookup) -> Option<Place> {
        if flags.contains(Lookup::WRITE) {
            return self.find_for(key, Purpose::Write);
        }
        let place = self.find_for(key, Purpose::Read);
        if !flags.contains(Lookup::NO_STATS) {
            let hit = place.is_some();
            let counter = if hit { &mut self.node.stats.hits } else { &mut self.node.stats.misses };
            *counter += 1;
        }
        if place.is_none()
            && !flags.contains(Lookup::NO_NOTIFY)
            && self.node.config.notify_keyspace_events.wants(Class::Miss.letter())
        {
            self.touch(&Bytes::copy_from_slice(key), Class::Miss, "keymiss");
        }
        place
    }

    /// The entry of a live key. `flags` turn off side effects of the lookup.
    pub fn lookup(&mut self, key: &[u8], flags: Lookup) -> Option<&Entry> {
        let place = self.lookup_place(key, flags)?;
        if flags.contains(Lookup::NO_TOUCH) {
            return Some(self.node.dbs[self.db].at(place));
        }
        let draw = self.usage_draw();
        Some(self.node.dbs[self.db].touched(place, self.now_ms, draw))
    }

    /// The entry of a live key, to read: a lookup with all its side effects.
    pub fn lookup_read(&mut self, key: &[u8]) -> Option<&Entry> {
        self.lookup(key, Lookup::empty())
    }

    /// The entry of a live key, for a command that is about to write it or would rather find it
    /// missing.
    pub fn lookup_write(&mut self, key: &[u8]) -> Option<&Entry> {
        self.lookup(key, Lookup::WRITE)
    }

    /// What decides whether a touch increments the LFU counter, under an LFU policy.
    fn usage_draw(&mut self) -> Option<Draw> {
        let counts = self.node.config.maxmemory_policy.counts_uses();
        counts.then(|| Draw { lfu: self.node.config.lfu, bits: self.env.random() })
    }

    /// The value of a key that is there, to change, with a touch.
    fn touched_mut(&mut self, place: Place) -> &mut Value {
        let draw = self.usage_draw();
        self.node.dbs[self.db].touched_mut(place, self.now_ms, draw)
    }

    /// Whether a live key is there, as [`Ctx::lookup_write`].
    pub fn exists_for_write(&mut self, key: &[u8]) -> bool {
        self.lookup_write(key).is_some()
    }

    /// The value of a live key as one type, to read.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn read<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&T>, Error> {
        match self.lookup_read(key) {
            None => Ok(None),
            Some(entry) => T::of(&entry.value).map(Some).ok_or(Error::WRONG_TYPE),
        }
    }

    /// The value of a live key as one type, to change. Report the change with [`Ctx::changed`].
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn modify<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Error> {
        let Some(place) = self.find_for(key, Purpose::Write) else { return Ok(None) };
        T::of_mut(self.touched_mut(place)).ok_or(Error::WRONG_TYPE).map(Some)
    }

    /// The value of a key that this command has looked up already, to change, without a second
    /// touch.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn modify_no_touch<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Error> {
        Ok(self.raw_db().typed_mut(key)?)
    }

    /// Whether a live key is there, without side effects of the lookup. It must be of one type
    /// then.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn check<T: Typed>(&mut self, key: &[u8]) -> Result<bool, Error> {
        match self.lookup(key, Lookup::PASSIVE) {
            None => Ok(false),
            Some(entry) => T::of(&entry.value).map(|_| true).ok_or(Error::WRONG_TYPE),
        }
    }

    /// The value of a key as one type, to change, created empty where there is none. A collection
    /// left empty must be given to [`Ctx::drop_if_empty`].
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn modify_or_create<T: Typed>(&mut self, key: &Bytes) -> Result<&mut T, Error> {
        let value = if let Some(place) = self.find_for(key, Purpose::Write) {
            self.touched_mut(place)
        } else {
            self.node.dbs[self.db].insert(key, T::empty(), None, Usage::new(self.now_ms));
            self.touch(key, Class::New, "new");
            let db = &mut self.node.dbs[self.db];
            let place = db.find(key).expect("the key was just made");
            db.touched_mut(place, self.now_ms, None)
        };
        T::of_mut(value).ok_or(Error::WRONG_TYPE)
    }

    /// Sets a key to a value with an expiry, whatever it held.
    pub fn put(&mut self, key: &Bytes, value: Value, expires_ms: Option<i64>) {
        let live = self.find_for(key, Purpose::Write);
        let mut usage = Usage::new(self.now_ms);
        // Overwriting a key keeps its LFU counter.
        if let Some(draw) = self.usage_draw()
            && let Some(old) = self.node.dbs[self.db].get(key)
        {
            usage = old.usage;
            usage.note(self.now_ms, Some(draw));
        }
        // Who waits in a group of a stream is to learn that it is gone.
        if self.node.dbs[self.db].get(key).is_some_and(|old| old.value.kind() == Kind::Stream) {
            self.signal(key);
        }
        self.note_own(key, expires_ms);
        let db = &mut self.node.dbs[self.db];
        let old = match live {
            Some(place) => Some(db.replace(place, key, value, expires_ms, usage)),
            None => db.insert(key, value, expires_ms, usage),
        };
        match old {
            Some(old) => self.node.count_freed(&old.value, self.node.config.lazy_free.server_del),
            None => self.touch(key, Class::New, "new"),
        }
    }

    /// Gives an entry another key or database, with all that is known of its use.
    pub fn put_entry(&mut self, key: &Bytes, entry: Entry) {
        let (expires_ms, usage) = (entry.expires_ms(), entry.usage);
        self.put(key, entry.value, expires_ms);
        self.raw_db().set_usage(key, usage);
    }

    /// Removes a key, even an expired one: a caller that cares looks it up before. Report it with
    /// [`Ctx::changed`].
    pub fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.node.dbs[self.db].remove(key)
    }

    /// Removes the key of a collection that has lost its last element, and reports it.
    pub fn drop_if_empty(&mut self, key: &Bytes) {
        if self.remove_if_empty(key) {
            self.touch(key, Class::Generic, "del");
        }
    }

    /// Removes the key of a collection that has lost its last element; whether it had.
    pub fn remove_if_empty(&mut self, key: &Bytes) -> bool {
        let db = &mut self.node.dbs[self.db];
        let is_empty = db.get(key).is_some_and(|entry| entry.value.is_empty_collection());
        if is_empty {
            db.remove(key);
        }
        is_empty
    }

    /// Whether a key that is to expire at `when_ms` had better be removed at once. A replica leaves
    /// that to its master.
    pub fn is_past(&self, when_ms: i64) -> bool {
        when_ms <= self.wall_ms() && self.origin != Origin::Replication && !self.node.is_replica()
    }

    /// Runs `action` in another database.
    pub fn in_db<T>(&mut self, db: usize, action: impl FnOnce(&mut Ctx<'a>) -> T) -> T {
        let own = std::mem::replace(&mut self.db, db);
        let result = action(self);
        self.db = own;
        result
    }

    /// Sets or clears the expiry of a live key; returns whether it is there.
    pub fn set_expiry(&mut self, key: &Bytes, expires_ms: Option<i64>) -> bool {
        let is_set = self.find_for(key, Purpose::Write).is_some()
            && self.node.dbs[self.db].set_expiry(key, expires_ms);
        self.note_own(key, expires_ms.filter(|_| is_set));
        is_set
    }

    /// On a replica that clients may write to, notes that a key expires of which the master may
    /// know nothing.
    fn note_own(&mut self, key: &Bytes, expires_ms: Option<i64>) {
        if let Some(when_ms) = expires_ms
            && self.origin != Origin::Replication
            && self.node.is_replica()
        {
            self.node.replication.own_expiries.note(self.db, key, when_ms);
        }
    }

    /// Reports that the command changed `key`: one more change, and an event for watchers, waiters
    /// and subscribers.
    pub fn changed(&mut self, key: &Bytes, class: Class, event: &'static str) {
        self.effects.dirty += 1;
        self.touch(key, class, event);
    }

    /// Reports as many changes inside `key` as `changes` says, with one event.
    pub fn changed_by(&mut self, changes: usize, key: &Bytes, class: Class, event: &'static str) {
        self.effects.dirty += changes as u64;
        self.touch(key, class, event);
    }

    /// Reports that `changes` elements were taken from a collection, and removes it with its last
    /// one. The invalidation for clients that track the key follows the events.
    pub fn taken(&mut self, changes: usize, key: &Bytes, class: Class, event: &'static str) {
        self.take_out(changes, key, (class, event), false);
    }

    /// As [`Ctx::taken`], where a server has replied before it removes the key.
    pub fn taken_before_reply(&mut self, changes: usize, key: &Bytes, class: Class, event: &'static str) {
        self.take_out(changes, key, (class, event), true);
    }

    fn take_out(
        &mut self,
        changes: usize,
        key: &Bytes,
        (class, event): (Class, &'static str),
        replies: bool,
    ) {
        self.effects.dirty += changes as u64;
        if self.remove_if_empty(key) {
            self.touch_as(key, class, event, Some(Signal::Apart));
            self.replied |= replies;
            self.touch_as(key, Class::Generic, "del", Some(Signal::Last));
        } else {
            self.touch_as(key, class, event, Some(Signal::Last));
        }
    }

    /// Notes that a server has written the reply by now: a client that subscribes to the events of
    /// its own command gets those from here on after it. Where `redis-server` 7.0 writes an event
    /// in the midst of a reply (ZPOPMIN, XREADGROUP), it comes before it here; so does the removal
    /// of the target of SINTERSTORE.
    pub fn replied(&mut self) {
        self.replied = true;
    }

    /// Reports an event about `key` that does not count as a change of its own.
    pub fn touch(&mut self, key: &Bytes, class: Class, event: &'static str) {
        self.touch_as(key, class, event, None);
    }

    /// Signals a change of `key` to clients that track or watch it; its event, if there is one, is
    /// reported separately.
    pub fn signal(&mut self, key: &Bytes) {
        self.touch(key, Class::Unannounced, "");
    }

    /// Reports an event about `key`; `signal` says how clients that track or watch the key are
    /// notified.
    pub fn touch_as(&mut self, key: &Bytes, class: Class, event: &'static str, signal: Option<Signal>) {
        if self.env.observing || self.node.wants_key_events() {
            let wanted = self.node.config.notify_keyspace_events;
            let served = self.pushed_to && self.ready.as_ref() == Some(key);
            let changer = match self.origin {
                Origin::Script => Changer::Server,
                _ if served => Changer::Pusher,
                _ => Changer::Client,
            };
            let mut touch = Touch::new(self.db, key.clone(), (class, event), wanted, changer);
            touch.signal = signal.unwrap_or(touch.signal);
            touch.after_reply = self.replied && matches!(self.origin, Origin::Client | Origin::Exec);
            self.effects.touched.push(touch);
        }
    }

    /// Reports a message for subscribers.
    pub fn publish(&mut self, channel: Bytes, message: Bytes, sharded: bool) {
        self.effects.publish(Publication { channel, message, sharded });
    }

    /// These commands are propagated instead of the one that was sent: absolute times for relative
    /// ones, say, or the elements that were drawn. With an empty list nothing is propagated.
    pub fn propagate_as(&mut self, commands: Vec<Vec<Bytes>>) {
        self.rewritten = Some(commands);
    }

    /// The protocol that replies are shaped for, where the shape itself differs. A script has one
    /// of its own.
    pub fn protocol(&self) -> Protocol {
        self.node.clients.sessions.get(self.conn).map_or(Protocol::Resp2, |session| session.protocol)
    }

    /// Whether a command may wait here; inside a transaction or a script it must answer at once.
    pub fn may_block(&self) -> bool {
        self.origin == Origin::Client
    }

    /// What the command waits for, if it does.
    pub fn take_block(&mut self) -> Option<Blocked> {
        self.block.take()
    }

    /// The keys that a blocking command looks at: all that it names, or the one that is ready when
    /// it has waited. The others are not for it then, whatever they hold by now.
    pub fn candidates(&self, keys: &[Bytes]) -> Vec<Bytes> {
        self.ready.as_ref().map_or_else(|| keys.to_vec(), |ready| vec![ready.clone()])
    }

    /// From here on, what the command takes from the key that it has waited for is part of the push
    /// that ended its waiting, for client-side caching: the pusher has changed it.
    pub fn take_as_pushed_to(&mut self) {
        self.pushed_to = true;
    }

    /// Makes the client wait for data under one of `keys`; where it may not wait, `otherwise` is
    /// the answer.
    pub fn wait(&mut self, args: &[Bytes], keys: &[Bytes], wait: Wait, otherwise: Reply) -> Reply {
        if !self.may_block() {
            return otherwise;
        }
        self.block(args, keys.to_vec(), wait.deadline, BlockedOn::Keys);
        Reply::Silence
    }

    /// Makes the client wait until one of `keys` is ready, when `args` is run again, or until
    /// `deadline`.
    pub fn block(&mut self, args: &[Bytes], keys: Vec<Bytes>, deadline: Option<Monotonic>, on: BlockedOn) {
        let ticket = self.node.clients.tickets;
        self.node.clients.tickets += 1;
        self.block = Some(Blocked { args: args.to_vec(), keys, deadline, ticket, on });
    }
}
