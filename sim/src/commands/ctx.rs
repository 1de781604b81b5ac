//! The context of a running command: the data with expiry applied, a frozen time, and the effects
//! to report.

use bytes::Bytes;

use super::{Error, Wait};
use crate::{
    durability::Disk,
    effect::{Changer, Class, Effects, PropagateTo, Publication, Signal, Touch},
    env::Env,
    event::ConnId,
    generation::Feature,
    keyspace::{Db, Draw, Entry, ExpiryRule, Found, Kind, Place, Str, Typed, Usage, Value},
    node::lazy_free::deletion,
    node::{
        Node,
        active_expiry::Purpose,
        clients::{Blocked, BlockedOn, Session},
    },
    resp::{Protocol, Reply},
    script::ScriptErrors,
    time::Monotonic,
};

/// The initiator of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client sent the command.
    Client,
    /// EXEC runs the command.
    Exec,
    /// A script calls the command.
    Script,
    /// The command comes from the master's stream or from the AOF.
    Replication,
}

bitflags::bitflags! {
    /// Flags that turn off side effects of a key lookup, named like Redis's `LOOKUP_*` flags.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Lookup: u8 {
        /// Keeps the LRU or LFU data of the key.
        const NO_TOUCH = 1;
        /// Counts neither a hit nor a miss.
        const NO_STATS = 1 << 1;
        /// Emits no keyspace event `keymiss` for a miss.
        const NO_NOTIFY = 1 << 2;
        /// For a write to the key: neither counts nor notifies, and deletes an expired key on a
        /// writable replica as well.
        const WRITE = 1 << 3;
        /// Updates the LRU and LFU data also for a client that prefers not to.
        const TOUCH = 1 << 4;
        /// Without any side effect, for a command that finds the key without the client naming it
        /// (SCAN, KEYS).
        const PASSIVE = Self::NO_TOUCH.bits() | Self::NO_STATS.bits() | Self::NO_NOTIFY.bits();
        /// For a command that inspects the server and not the data (OBJECT): only counts the
        /// lookup.
        const INSPECT = Self::NO_TOUCH.bits() | Self::NO_NOTIFY.bits();
    }
}

/// The context of one command. Scripts and transactions run several commands, each with its own
/// context, on the same effects.
pub struct Ctx<'a> {
    /// The node, for commands about it. Commands reach data through the methods here.
    pub node: &'a mut Box<Node>,
    /// Time and PRNG.
    pub env: &'a mut Env,
    /// Effects of this batch so far.
    pub effects: &'a mut Effects,
    /// The connection that the command runs for.
    pub conn: ConnId,
    /// The database that the command works on.
    pub db: usize,
    /// The initiator of the command.
    pub origin: Origin,
    /// The wall clock in milliseconds, frozen for the whole batch. It decides about expiry.
    pub now_ms: i64,
    /// Targets of the propagation.
    pub(super) to: PropagateTo,
    /// Commands to propagate instead of the original.
    pub(super) rewritten: Option<Vec<Vec<Bytes>>>,
    /// The errors in the reply of a script. `None` for other commands, which have at most one.
    pub(super) script_errors: Option<ScriptErrors>,
    /// Set if the command blocks.
    pub(super) block: Option<Blocked>,
    /// The ready key, when a blocked command runs again for it.
    pub(super) ready: Option<Bytes>,
    /// Set if the elements taken from the ready key belong to the push, and are no change of their
    /// own.
    pushed_to: bool,
    /// Set once a server would have written the reply.
    replied: bool,
}

impl<'a> Ctx<'a> {
    /// Makes the context of a command of `conn` on database `db`.
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

    /// Makes the context of a blocked command, now that `key` is ready.
    pub fn woken_by(mut self, key: Bytes) -> Ctx<'a> {
        self.ready = Some(key);
        self
    }

    /// Returns the connection's session.
    ///
    /// # Panics
    /// If the connection is gone: commands run only for live ones.
    pub fn session(&mut self) -> &mut Session {
        self.node.clients.sessions.get_mut(self.conn).expect("commands run for live connections")
    }

    /// Returns the wall clock in milliseconds, for computing absolute times. It may advance within
    /// a batch; see [`Env::clock`](crate::env::Env::clock). In a script it is the time at which the
    /// script began, in generations whose time stands still there.
    pub fn wall_ms(&self) -> i64 {
        match self.origin == Origin::Script && self.node.config.generation.has(Feature::FrozenScripts) {
            true => self.now_ms,
            false => self.env.wall.as_millis(),
        }
    }

    /// Writes one of the node's own files to its path. Without a machine around the node, `keep`
    /// writes it to the node's own disk.
    ///
    /// # Errors
    /// The reason why the file cannot be written.
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

    /// Returns the selected database, which still holds expired keys.
    pub fn raw_db(&mut self) -> &mut Db {
        &mut self.node.dbs[self.db]
    }

    /// Returns the rule that decides if a key has expired.
    pub fn expiry_rule(&self) -> ExpiryRule {
        self.node.config.expiry_rule(self.now_ms)
    }

    /// Returns the rule that decides if a field of a hash has expired. The master's stream itself
    /// decides when a field is gone.
    pub fn field_rule(&self) -> ExpiryRule {
        if self.origin == Origin::Replication { ExpiryRule::at(i64::MIN) } else { self.expiry_rule() }
    }

    /// Finds the place of a live key. Deletes an expired key if this node may, and hides it
    /// otherwise.
    fn find_for(&mut self, key: &[u8], purpose: Purpose) -> Option<Place> {
        // The master's stream itself decides when a key is gone.
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

    /// Finds the place of a live key, with the side effects that `flags` leave on. The caller
    /// updates the LRU and LFU data.
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
            && self.node.config.keyspace.notify_keyspace_events.wants(Class::Miss.letter())
        {
            self.touch(&Bytes::copy_from_slice(key), Class::Miss, "keymiss");
        }
        place
    }

    /// Returns the entry of a live key. `flags` turn off side effects of the lookup.
    pub fn lookup(&mut self, key: &[u8], flags: Lookup) -> Option<&Entry> {
        let place = self.lookup_place(key, flags)?;
        if flags.contains(Lookup::NO_TOUCH) || !flags.contains(Lookup::TOUCH) && self.spares_usage() {
            return Some(self.node.dbs[self.db].at(place));
        }
        let draw = self.usage_draw();
        Some(self.node.dbs[self.db].touched(place, self.now_ms, draw))
    }

    /// Returns the entry of a live key for reading, with all side effects of a lookup.
    pub fn lookup_read(&mut self, key: &[u8]) -> Option<&Entry> {
        self.lookup(key, Lookup::empty())
    }

    /// Returns the entry of a live key, for a command that will write it or requires that it is
    /// absent.
    pub fn lookup_write(&mut self, key: &[u8]) -> Option<&Entry> {
        self.lookup(key, Lookup::WRITE)
    }

    /// Returns true if the commands of the connection do not count as use of their keys.
    fn spares_usage(&self) -> bool {
        let clients = &self.node.clients;
        clients.may_spare_usage && clients.sessions.get(self.conn).is_some_and(|session| session.no_touch)
    }

    /// Under an LFU policy, draws the random input for the LFU counter.
    fn usage_draw(&mut self) -> Option<Draw> {
        let counts = self.node.config.memory.maxmemory_policy.counts_uses();
        counts.then(|| Draw { lfu: self.node.config.memory.lfu, bits: self.env.random() })
    }

    /// Returns the value at a place for changes, and updates its LRU and LFU data.
    fn touched_mut(&mut self, place: Place) -> &mut Value {
        if self.spares_usage() {
            return self.node.dbs[self.db].value_mut(place);
        }
        let draw = self.usage_draw();
        self.node.dbs[self.db].touched_mut(place, self.now_ms, draw)
    }

    /// Returns true if a live key exists, like [`Ctx::lookup_write`].
    pub fn exists_for_write(&mut self, key: &[u8]) -> bool {
        self.lookup_write(key).is_some()
    }

    /// Returns the value of a live key as type `T`, for reading.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn read<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&T>, Error> {
        match self.lookup_read(key) {
            None => Ok(None),
            Some(entry) => T::of(&entry.value).map(Some).ok_or(Error::WRONG_TYPE),
        }
    }

    /// Returns the value of a live key as type `T`, for changes. Report them with [`Ctx::changed`].
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn modify<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Error> {
        let Some(place) = self.find_for(key, Purpose::Write) else { return Ok(None) };
        T::of_mut(self.touched_mut(place)).ok_or(Error::WRONG_TYPE).map(Some)
    }

    /// Returns the value of a key that this command has looked up already, for changes, without a
    /// second update of its LRU and LFU data.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn modify_no_touch<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Error> {
        Ok(self.raw_db().typed_mut(key)?)
    }

    /// Returns true if a live key exists, without side effects of the lookup. An existing key must
    /// have type `T`.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn check<T: Typed>(&mut self, key: &[u8]) -> Result<bool, Error> {
        match self.lookup(key, Lookup::PASSIVE) {
            None => Ok(false),
            Some(entry) => T::of(&entry.value).map(|_| true).ok_or(Error::WRONG_TYPE),
        }
    }

    /// Returns the value of a key as type `T`, for changes; creates an empty one if the key is
    /// absent. Call [`Ctx::drop_if_empty`] if the collection stays empty.
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

    /// Returns true if the key holds a string of these bytes. Counts neither a hit nor a miss.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn equals(&mut self, key: &[u8], wanted: &[u8]) -> Result<bool, Error> {
        match self.lookup(key, Lookup::PASSIVE) {
            None => Ok(false),
            Some(entry) => {
                let string = Str::of(&entry.value).ok_or(Error::WRONG_TYPE)?;
                Ok(string.bytes().apart() == *wanted)
            }
        }
    }

    /// Sets a key to a value with an expiry, whatever the key held.
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
        // Clients that wait in a consumer group must learn that the stream is gone.
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
            Some(old) => self.node.count_freed(&old.value, self.node.config.memory.lazy_free.server_del),
            None => self.touch(key, Class::New, "new"),
        }
    }

    /// Stores an entry under another key or in another database, with its expiry and usage.
    pub fn put_entry(&mut self, key: &Bytes, entry: Entry) {
        let (expires_ms, usage) = (entry.expires_ms(), entry.usage);
        self.put(key, entry.value, expires_ms);
        self.raw_db().set_usage(key, usage);
    }

    /// Removes a key, even an expired one; look it up first if that matters. Report the removal
    /// with [`Ctx::changed`].
    pub fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.node.dbs[self.db].remove(key)
    }

    /// Removes the key of a collection without elements, and reports the removal.
    pub fn drop_if_empty(&mut self, key: &Bytes) {
        if self.remove_if_empty(key) {
            self.touch(key, Class::Generic, "del");
        }
    }

    /// Removes the key of a collection without elements; returns true if it did.
    pub fn remove_if_empty(&mut self, key: &Bytes) -> bool {
        let db = &mut self.node.dbs[self.db];
        let is_empty = db.get(key).is_some_and(|entry| entry.value.is_empty_collection());
        if is_empty {
            db.remove(key);
        }
        is_empty
    }

    /// Returns true if a key with expiry `when_ms` must be removed right away. A replica leaves
    /// that to its master.
    pub fn is_past(&self, when_ms: i64) -> bool {
        when_ms <= self.wall_ms() && self.origin != Origin::Replication && !self.node.is_replica()
    }

    /// Removes a live key instead of giving it an expiry that [is past](Ctx::is_past). In Valkey it
    /// counts as expired.
    pub fn remove_past(&mut self, key: &Bytes) {
        self.remove(key);
        if self.node.config.generation.is_valkey() {
            self.node.stats.expired += 1;
            self.changed(key, Class::Expired, "expired");
        } else {
            self.changed(key, Class::Generic, "del");
        }
        self.propagate_as(vec![deletion(self.node.config.memory.lazy_free.expire, key)]);
    }

    /// Runs `action` on another database.
    pub fn in_db<T>(&mut self, db: usize, action: impl FnOnce(&mut Ctx<'a>) -> T) -> T {
        let own = std::mem::replace(&mut self.db, db);
        let result = action(self);
        self.db = own;
        result
    }

    /// Sets or clears the expiry of a live key; returns true if the key exists.
    pub fn set_expiry(&mut self, key: &Bytes, expires_ms: Option<i64>) -> bool {
        let is_set = self.find_for(key, Purpose::Write).is_some()
            && self.node.dbs[self.db].set_expiry(key, expires_ms);
        self.note_own(key, expires_ms.filter(|_| is_set));
        is_set
    }

    /// On a writable replica, records the expiry of a key that the master may not know.
    fn note_own(&mut self, key: &Bytes, expires_ms: Option<i64>) {
        if let Some(when_ms) = expires_ms
            && self.origin != Origin::Replication
            && self.node.is_replica()
        {
            self.node.replication.own_expiries.note(self.db, key, when_ms);
        }
    }

    /// Reports that the command changed `key`: counts one change, and sends an event to watchers,
    /// waiters and subscribers.
    pub fn changed(&mut self, key: &Bytes, class: Class, event: &'static str) {
        self.effects.dirty += 1;
        self.touch(key, class, event);
    }

    /// Reports `changes` changes inside `key`, with one event.
    pub fn changed_by(&mut self, changes: usize, key: &Bytes, class: Class, event: &'static str) {
        self.effects.dirty += changes as u64;
        self.touch(key, class, event);
    }

    /// Reports that `changes` elements were taken from a collection, and removes an empty
    /// collection. The invalidation for tracking clients follows the events.
    pub fn taken(&mut self, changes: usize, key: &Bytes, class: Class, event: &'static str) {
        self.take_out(changes, key, (class, event), false);
    }

    /// Like [`Ctx::taken`], for commands whose reply a server writes before it removes the key.
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

    /// Records that a server would have written the reply by now: a client that subscribes to the
    /// events of its own command gets later events after the reply. `redis-server` 7.0 writes some
    /// events in the middle of a reply (ZPOPMIN, XREADGROUP). Here they come before the reply, as
    /// does the removal of the target of SINTERSTORE.
    pub fn replied(&mut self) {
        self.replied = true;
    }

    /// Reports an event about `key` that does not count as a change.
    pub fn touch(&mut self, key: &Bytes, class: Class, event: &'static str) {
        self.touch_as(key, class, event, None);
    }

    /// Signals a change of `key` to clients that track or watch it. An event, if any, is reported
    /// separately.
    pub fn signal(&mut self, key: &Bytes) {
        self.touch(key, Class::Unannounced, "");
    }

    /// Reports an event about `key`; `signal` decides how clients that track or watch the key are
    /// notified.
    pub fn touch_as(&mut self, key: &Bytes, class: Class, event: &'static str, signal: Option<Signal>) {
        if self.env.observing || self.node.wants_key_events() {
            let wanted = self.node.config.keyspace.notify_keyspace_events;
            let is_old = self.node.config.generation.is_before_7_2();
            let served = is_old && self.pushed_to && self.ready.as_ref() == Some(key);
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

    /// Propagates these commands instead of the original: for example with absolute times for
    /// relative ones, or with the drawn elements. An empty list propagates nothing.
    pub fn propagate_as(&mut self, commands: Vec<Vec<Bytes>>) {
        self.rewritten = Some(commands);
    }

    /// Returns the client's protocol, for replies whose shape depends on it. A script has its own
    /// protocol.
    pub fn protocol(&self) -> Protocol {
        self.node.clients.sessions.get(self.conn).map_or(Protocol::Resp2, |session| session.protocol)
    }

    /// Returns true if a command may block. Inside a transaction or a script it must reply without
    /// waiting.
    pub fn may_block(&self) -> bool {
        self.origin == Origin::Client
    }

    /// Takes the description of the wait, if the command blocks.
    pub fn take_block(&mut self) -> Option<Blocked> {
        self.block.take()
    }

    /// Returns the keys that a blocking command checks: all that it names, or only the ready key
    /// after a wait. It then ignores the others, whatever they hold.
    pub fn candidates(&self, keys: &[Bytes]) -> Vec<Bytes> {
        self.ready.as_ref().map_or_else(|| keys.to_vec(), |ready| vec![ready.clone()])
    }

    /// Marks later removals from the ready key as part of the push that ended the wait: for
    /// client-side caching, the pusher has changed the key.
    pub fn take_as_pushed_to(&mut self) {
        self.pushed_to = true;
    }

    /// Blocks the client until data is under one of `keys`. Returns `otherwise` if the command may
    /// not block.
    pub fn wait(&mut self, args: &[Bytes], keys: &[Bytes], wait: Wait, otherwise: Reply) -> Reply {
        if !self.may_block() {
            return otherwise;
        }
        self.block(args, keys.to_vec(), wait.deadline, BlockedOn::Keys);
        Reply::Silence
    }

    /// Blocks the client until one of `keys` is ready, and then runs `args` again, or until
    /// `deadline`.
    pub fn block(&mut self, args: &[Bytes], keys: Vec<Bytes>, deadline: Option<Monotonic>, on: BlockedOn) {
        let ticket = self.node.clients.tickets;
        self.node.clients.tickets += 1;
        self.block = Some(Blocked { args: args.to_vec(), keys, deadline, ticket, on });
    }
}
