//! The state of one node, whole: its data, its options, its connections. Behaviour is elsewhere; this is what it works on.

use std::collections::BTreeMap;

use crate::{
    config::Config,
    durability::rdb,
    event::ConnId,
    glob::matches,
    keyspace::Db,
    pubsub::{PubSub, Subscription},
    replication::Replication,
    resp::Reply,
    session::Session,
    time::Monotonic,
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
    /// The counters.
    pub stats: Stats,
    /// Its place among masters and replicas.
    pub replication: Replication,
    /// 40 hex digits that name this run of the process.
    pub run_id: String,
    /// When the process started.
    pub started: Monotonic,
    /// CLIENT PAUSE: until when, and whether only writes wait.
    pub paused: Option<(Monotonic, PauseMode)>,
    /// The node does nothing until then (DEBUG SLEEP).
    pub stalled_until: Option<Monotonic>,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: bool,
    /// Connections that have something to send, or to be closed, at the end of the step.
    pub pending: Vec<ConnId>,
    /// Connections dialed so far.
    pub dialed: u64,
    /// The next [`Blocked::ticket`](crate::session::Blocked::ticket).
    pub tickets: u64,
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
            stats: Stats::default(),
            replication: Replication::new(replication_id),
            dialed: 0,
            run_id,
            started,
            paused: None,
            stalled_until: None,
            active_expire: true,
            pending: Vec::new(),
            tickets: 0,
        }
    }

    /// Writes a reply or a push to a connection, to be sent at the end of the step.
    pub fn send(&mut self, conn: ConnId, reply: &Reply) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if session.out.is_empty() {
            self.pending.push(conn);
        }
        if reply.is_error() {
            self.stats.errors += 1;
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

    /// Closes a connection at the end of the step, once what it was sent is on its way.
    pub fn close(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        session.closing = true;
        self.pending.push(conn);
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
