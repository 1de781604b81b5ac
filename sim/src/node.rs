//! The state of one node, whole: its data, its options, its connections. Behaviour is elsewhere; this is what it works on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::{
    config::Config,
    durability::{AppendLog, Disk, rdb},
    effect::Effects,
    event::ConnId,
    glob::matches,
    keyspace::Db,
    pubsub::{PubSub, Subscription},
    replication::Replication,
    resp::Reply,
    script::Engine,
    session::{Blocked, BlockedOn, Replies, Session, Watched},
    time::Monotonic,
    waiting::Waiting,
};

/// Counters that INFO prints.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Connections accepted since the start.
    pub connections: u64,
    /// Connections refused because of `maxclients`.
    pub rejected: u64,
    /// Commands executed.
    pub commands: u64,
    /// Keys removed because they expired.
    pub expired: u64,
    /// Keys removed for memory.
    pub evicted: u64,
    /// Lookups that found a key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Changes since the last save.
    pub dirty: u64,
    /// Error replies.
    pub errors: u64,
    /// Error replies by their first word, such as `WRONGTYPE`.
    pub errors_by_code: BTreeMap<String, u64>,
    /// What became of each command, by name.
    pub calls: BTreeMap<&'static str, Calls>,
    /// Bytes received.
    pub net_in: u64,
    /// Bytes sent.
    pub net_out: u64,
}

/// What became of the calls of one command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    /// Executed.
    pub executed: u64,
    /// Refused before they ran.
    pub rejected: u64,
    /// Executed, and answered with an error.
    pub failed: u64,
}

impl Stats {
    /// Error codes that are told apart at most: scripts may make up any number of them.
    const CODES_MAX: usize = 128;

    /// Counts an error reply.
    pub fn note_error(&mut self, text: &str) {
        self.errors += 1;
        let code = text.split(' ').next().unwrap_or_default();
        if let Some(count) = self.errors_by_code.get_mut(code) {
            *count += 1;
        } else if self.errors_by_code.len() < Stats::CODES_MAX {
            self.errors_by_code.insert(code.to_owned(), 1);
        }
    }
}

/// Everything a node knows.
#[derive(Debug)]
pub struct Node {
    /// The options.
    pub config: Config,
    /// The databases, by number.
    pub dbs: Vec<Db>,
    /// The connections, by id, in order of arrival.
    pub sessions: BTreeMap<ConnId, Session>,
    /// Who listens to what.
    pub pubsub: PubSub,
    /// Who watches which key (WATCH), by database and key.
    pub watchers: BTreeMap<(usize, Bytes), BTreeSet<ConnId>>,
    /// Lua, and the scripts it knows.
    pub scripts: Engine,
    /// The script that does not end, if one runs.
    pub busy: Option<Busy>,
    /// The counters.
    pub stats: Stats,
    /// Its place among masters and replicas.
    pub replication: Replication,
    /// The files that the next run will find.
    pub disk: Disk,
    /// The append-only file being written.
    pub append_log: AppendLog,
    /// The wall-clock second of the last snapshot to disk, or of the start (LASTSAVE).
    pub saved_at: i64,
    /// 40 hex digits that name this run of the process.
    pub run_id: String,
    /// When the process started.
    pub started: Monotonic,
    /// CLIENT PAUSE: until when, and whether only writes wait.
    pub paused: Option<(Monotonic, PauseMode)>,
    /// The node does nothing until then (DEBUG SLEEP, or a script that has only just turned out to be endless).
    pub stalled_until: Option<Monotonic>,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: bool,
    /// Connections that have something to send, or to be closed, at the end of the step.
    pub pending: Vec<ConnId>,
    /// Connections that no longer wait: what they sent meanwhile is to be read on.
    pub woken: VecDeque<ConnId>,
    /// Who waits for keys.
    pub waiting: Waiting,
    /// Connections that see every command (MONITOR).
    pub monitors: BTreeSet<ConnId>,
    /// More memory is in use than `maxmemory` allows, and nothing more can be evicted.
    pub out_of_memory: bool,
    /// The last save to disk failed: writes are refused while `stop-writes-on-bgsave-error` says so.
    pub save_failed: bool,
    /// The data is still being read from disk.
    pub loading: bool,
    /// SHUTDOWN was called: the process ends with this step.
    pub exiting: bool,
    /// Connections dialed so far.
    pub dialed: u64,
    /// The next [`Blocked::ticket`](crate::session::Blocked::ticket).
    pub tickets: u64,
}

/// A script that used up its budget, and is taken to run until it is killed.
#[derive(Debug)]
pub struct Busy {
    /// Whose script it is.
    pub conn: ConnId,
    /// Whether it called a command that writes: it cannot be killed then.
    pub wrote: bool,
    /// The error that its client gets when it is killed.
    pub killed: String,
    /// What the batch did so far. Nobody hears of it while the script runs.
    pub held: Effects,
    /// If it runs inside EXEC: the replies so far, and the commands after it.
    pub transaction: Option<(Vec<Reply>, Vec<Vec<Bytes>>)>,
}

/// Which commands CLIENT PAUSE holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseMode {
    /// All of them.
    All,
    /// Those that may write.
    Write,
}

impl Node {
    /// A node that has just started, with empty databases.
    pub fn new(config: Config, run_id: String, replication_id: String, started: Monotonic) -> Node {
        Node {
            dbs: (0..config.databases).map(|_| Db::default()).collect(),
            config,
            sessions: BTreeMap::new(),
            pubsub: PubSub::default(),
            watchers: BTreeMap::new(),
            scripts: Engine::default(),
            busy: None,
            stats: Stats::default(),
            replication: Replication::new(replication_id),
            dialed: 0,
            disk: Disk::default(),
            append_log: AppendLog::default(),
            saved_at: 0,
            run_id,
            started,
            paused: None,
            stalled_until: None,
            active_expire: true,
            pending: Vec::new(),
            woken: VecDeque::new(),
            waiting: Waiting::default(),
            monitors: BTreeSet::new(),
            out_of_memory: false,
            save_failed: false,
            loading: false,
            exiting: false,
            tickets: 0,
        }
    }

    /// Writes a reply or a push to a connection, to be sent at the end of the step. CLIENT REPLY holds back replies, never
    /// pushes.
    pub fn send(&mut self, conn: ConnId, reply: &Reply) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let silent = matches!(session.replies, Replies::Off | Replies::Skip);
        if session.closing || (silent && !reply.is_push()) {
            return;
        }
        if session.out.is_empty() {
            self.pending.push(conn);
        }
        reply.encode(session.protocol, &mut session.out);
    }

    /// Writes bytes to a connection that are no reply, such as the replication stream.
    pub fn send_raw(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if session.out.is_empty() {
            self.pending.push(conn);
        }
        session.out.extend_from_slice(bytes);
    }

    /// The name for the next connection that the node dials.
    pub fn next_dialed(&mut self) -> ConnId {
        self.dialed += 1;
        ConnId(ConnId::DIALED + self.dialed)
    }

    /// Forgets what a connection watches, and whether any of it has changed.
    pub fn unwatch_all(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        session.watch_broken = false;
        for Watched { db, key, .. } in std::mem::take(&mut session.watched) {
            let at = (db, key);
            if let Some(watchers) = self.watchers.get_mut(&at) {
                watchers.remove(&conn);
                if watchers.is_empty() {
                    self.watchers.remove(&at);
                }
            }
        }
    }

    /// Leaves a transaction without running it, and forgets the watched keys.
    pub fn discard(&mut self, conn: ConnId) {
        self.unwatch_all(conn);
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.transaction = None;
        }
    }

    /// Tells the watchers of a key that it changed.
    pub fn break_watches(&mut self, db: usize, key: &Bytes) {
        if self.watchers.is_empty() {
            return;
        }
        let Some(watchers) = self.watchers.get(&(db, key.clone())) else { return };
        for conn in watchers {
            let Some(session) = self.sessions.get_mut(conn) else { continue };
            let gone = self.dbs[db].get(key).is_none();
            let at = |was_expired| Watched { db, key: key.clone(), was_expired };
            // The removal of a key that had expired before it was watched changes nothing; what comes after it does.
            if gone && session.watched.remove(&at(true)) {
                session.watched.insert(at(false));
            } else {
                session.watch_broken = true;
            }
        }
    }

    /// Closes a connection at the end of the step, once what it was sent is on its way.
    pub fn close(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        session.closing = true;
        self.pending.push(conn);
    }

    /// Closes a connection at the end of the step, and drops what it was to be sent.
    pub fn kill(&mut self, conn: ConnId) {
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.out.clear();
        }
        self.close(conn);
    }

    /// Makes a connection wait for data under keys, or for something else.
    pub fn wait(&mut self, conn: ConnId, blocked: Blocked) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if blocked.on == BlockedOn::Keys {
            self.waiting.enter(session.db, conn, &blocked);
        }
        session.blocked = Some(blocked);
    }

    /// Ends the wait of a connection for keys; what it sent meanwhile is read on later in the step. Its reply is the caller's
    /// to send. Other waits are left alone.
    pub fn stop_waiting(&mut self, conn: ConnId) -> Option<Blocked> {
        let session = self.sessions.get_mut(&conn)?;
        let blocked = session.blocked.take_if(|blocked| blocked.on == BlockedOn::Keys)?;
        self.waiting.leave(session.db, conn, &blocked);
        self.woken.push_back(conn);
        Some(blocked)
    }

    /// Makes a connection listen.
    pub fn subscribe(&mut self, conn: ConnId, kind: Subscription, name: Bytes) {
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.subscribed_mut(kind).insert(name.clone());
            self.pubsub.subscribe(kind, name, conn);
        }
    }

    /// Ends one subscription of a connection.
    pub fn unsubscribe(&mut self, conn: ConnId, kind: Subscription, name: &Bytes) {
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.subscribed_mut(kind).remove(name);
            self.pubsub.unsubscribe(kind, name, conn);
        }
    }

    /// Ends all subscriptions of one kind.
    pub fn unsubscribe_all(&mut self, conn: ConnId, kind: Subscription) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        for name in std::mem::take(session.subscribed_mut(kind)) {
            self.pubsub.unsubscribe(kind, &name, conn);
        }
    }

    /// What a server uses before it has any data, about as `redis-server` 7.0 does.
    pub const STARTUP_MEMORY: usize = 876_336;

    /// Bytes in use: those of the start, and those of keys and values as `keyspace/memory.rs` reckons them.
    pub fn used_memory(&self) -> usize {
        self.dbs.iter().map(Db::memory).fold(Node::STARTUP_MEMORY, usize::saturating_add)
    }

    /// Whether CLIENT PAUSE is in force. Keys neither expire nor are evicted meanwhile, lest the data change under a failover.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// How many replicas had answered within `min-replicas-max-lag` when the periodic work last looked.
    pub fn good_replicas(&self) -> usize {
        self.replication.good_replicas
    }

    /// Whether this is a replica whose link to its master is down, so that its data may be stale.
    pub fn is_stale(&self) -> bool {
        self.replication.master.as_ref().is_some_and(|link| !link.is_up())
    }

    /// How many clients a message on `channel` reaches; a client is counted once per subscription that matches.
    pub fn receivers(&self, channel: &[u8]) -> usize {
        let of =
            self.pubsub.of(Subscription::Channel).get(channel).map_or(0, |subscribers| subscribers.len());
        let patterns = self.pubsub.of(Subscription::Pattern).iter();
        of + patterns.filter(|(pattern, _)| matches(pattern, channel)).map(|(_, to)| to.len()).sum::<usize>()
    }

    /// The address a replica of this node is known by: the one it told, or the one it comes from.
    pub fn replica_address(&self, conn: ConnId) -> String {
        let told = self.replication.replicas.get(&conn).map(|replica| replica.ip.clone());
        told.filter(|ip| !ip.is_empty()).unwrap_or_else(|| {
            let peer = self.sessions.get(&conn).map_or("", |session| &session.peer);
            peer.rsplit_once(':').map_or(peer, |(host, _)| host).to_owned()
        })
    }

    /// What a snapshot of this node says about where it comes from.
    pub fn snapshot_origin(&self, now_secs: i64, aof_base: bool) -> rdb::Origin {
        let db = match &self.replication.master {
            Some(link) => link.resume,
            None => self.replication.backlog.is_some().then(|| self.replication.selected.unwrap_or(0)),
        };
        let history = &self.replication.history;
        let replication = db.map(|db| (history.id.clone(), history.offset, db));
        rdb::Origin { created: now_secs, replication, aof_base }
    }

    /// Saves a snapshot to disk. It takes no time, as if the child process were infinitely fast.
    pub fn save(&mut self, now_secs: i64) {
        self.disk.snapshot = Some(rdb::write(&self.dbs, &self.snapshot_origin(now_secs, false)));
        self.saved_at = now_secs;
        self.stats.dirty = 0;
    }

    /// Puts the data of the snapshot on disk in place of what there is. A master leaves out what has expired.
    ///
    /// # Errors
    /// When there is no snapshot that can be read; the data stays as it is then.
    pub fn reload(&mut self, now_ms: i64) -> Result<(), rdb::RdbError> {
        let snapshot = self.disk.snapshot.clone().unwrap_or_default();
        let expired_before_ms = (!self.is_replica()).then_some(now_ms);
        self.dbs = rdb::open(&snapshot, &self.config, expired_before_ms)?.dbs;
        self.data_replaced();
        Ok(())
    }

    /// Begins the append-only file anew, with all there is now as its base.
    pub fn rewrite_log(&mut self, now_secs: i64) {
        let open = self.append_log.open;
        let base = rdb::write(&self.dbs, &self.snapshot_origin(now_secs, true));
        self.disk.log = Some(self.append_log.begin(base, now_secs));
        self.append_log.open = open;
    }

    /// All data was replaced: whoever watched any of it is told so by EXEC.
    pub fn data_replaced(&mut self) {
        for session in self.sessions.values_mut() {
            session.watch_broken |= !session.watched.is_empty();
        }
    }

    /// Whether expired keys are only hidden, because deleting them is the master's to do.
    pub fn is_replica(&self) -> bool {
        self.replication.master.is_some()
    }
}
