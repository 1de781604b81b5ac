//! The state of one node, whole: its data, its options, its connections. Behaviour is elsewhere;
//! this is what it works on.

pub mod clients;
mod cluster;
pub mod expiry;
pub mod latency;
pub mod lazy_free;
mod memory;
pub mod migration;
pub mod rates;
pub mod slowlog;
pub mod stats;

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::{
    acl::Acl,
    cluster::Cluster,
    config::{Config, DisklessLoad, Notify},
    durability::{AofWriter, Disk, LogState, rdb},
    effect::Effects,
    env::Env,
    event::ConnId,
    keyspace::{Db, Value},
    node::{
        clients::{Clients, ReplyBufferRules},
        lazy_free::is_worth_background,
        migration::{Migration, Targets},
        slowlog::SlowLog,
        stats::Stats,
    },
    replication::{Payload, Replication, Stage},
    resp::{Protocol, Reply},
    script::{Engine, Host, Libraries, Suspended},
    sentinel::Sentinel,
    time::Monotonic,
};

/// Everything a node knows.
#[derive(Debug)]
pub struct Node {
    /// The options.
    pub config: Config,
    /// The users.
    pub acl: Acl,
    /// The databases, by number.
    pub dbs: Vec<Db>,
    /// The connections.
    pub clients: Clients,
    /// Its files, and what is being written to them.
    pub persistence: Persistence,
    /// What DEBUG has switched.
    pub debug: DebugSwitches,
    /// Lua, and the scripts it knows.
    pub scripts: Engine,
    /// The libraries of functions.
    pub libraries: Libraries,
    /// The script that takes long, if one runs.
    pub busy: Option<Busy>,
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
    /// The commands that took long.
    pub slowlog: SlowLog,
    /// What took longer than `latency-monitor-threshold`.
    pub latency: latency::Monitor,
    /// SHUTDOWN, or a signal, has asked for the end of the process.
    pub shutdown: Option<Shutdown>,
    /// The node does nothing until then (DEBUG SLEEP, or a script that has only just turned out to
    /// be endless).
    pub stalled_until: Option<Monotonic>,
    /// For how long it was blocked so far (DEBUG SLEEP), for the durations of commands.
    pub stood_still: Duration,
    /// More memory is in use than `maxmemory` allows, and nothing more can be evicted.
    pub out_of_memory: bool,
    /// The migration that the node does nothing beside, if one is under way.
    pub migration: Option<Migration>,
    /// The connections of earlier migrations.
    pub targets: Targets,
    /// The data that is being read, while that lasts.
    pub loading: Option<Loading>,
    /// SHUTDOWN was called, or the process has given up: it ends with this step.
    pub exiting: bool,
    /// Connections dialed so far.
    pub dialed: u64,
    /// What makes it a Sentinel, if it is one. It has no data then, and other commands.
    pub sentinel: Option<Box<Sentinel>>,
    /// What makes it a node of a cluster, if it is one.
    pub cluster: Option<Box<Cluster>>,
}

/// The files of a node, and what is being written to them.
#[derive(Debug, Default)]
pub struct Persistence {
    /// The files that the next run will find.
    pub disk: Disk,
    /// The append-only file being written.
    pub aof: AofWriter,
    /// The wall-clock second of the last snapshot to disk, or of the start (LASTSAVE).
    pub saved_at: i64,
    /// The wall-clock second at which the last save in the background began.
    pub save_tried_at: i64,
    /// What is written in the background.
    pub background: Option<Background>,
    /// A rewrite of the append-only file is to begin when nothing else is written in the
    /// background, or when the transaction is over that has asked for it: what that does would be
    /// written behind the base, and be done twice.
    pub rewrite_scheduled: bool,
    /// A save is to begin under the same conditions.
    pub save_scheduled: bool,
    /// The last save to disk failed: writes are refused while `stop-writes-on-bgsave-error` says
    /// so.
    pub save_failed: bool,
    /// The client that wants the append-only file to be read again, if one does.
    pub reload_wanted: Option<ConnId>,
}

/// What DEBUG has switched, which tests of servers do.
#[derive(Debug)]
pub struct DebugSwitches {
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: bool,
    /// DEBUG PAUSE-CRON: the periodic work rests, and signals wait.
    pub cron_paused: bool,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: payloads are restored whatever their checksums are.
    pub skip_checksums: bool,
    /// DEBUG REPLYBUFFER.
    pub reply_buffer: ReplyBufferRules,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call DEBUG.
    pub scripts_may_debug: bool,
}

impl Default for DebugSwitches {
    fn default() -> DebugSwitches {
        DebugSwitches {
            active_expire: true,
            cron_paused: false,
            skip_checksums: false,
            reply_buffer: ReplyBufferRules::default(),
            scripts_may_debug: false,
        }
    }
}

/// A script that takes so long that others have turns in between. By a node's own clock it goes on
/// in its next turn; one that used up a budget has none, and is taken to run until it is killed.
#[derive(Debug)]
pub struct Busy {
    /// Whose script it is.
    pub conn: ConnId,
    /// Where it stands.
    pub script: Suspended,
    /// What it has of the node while it runs.
    pub host: Box<dyn Host>,
    /// Whether it called a command that writes: it cannot be killed then.
    pub wrote: bool,
    /// The function it is, if it is not a script.
    pub function: Option<String>,
    /// The command that called it.
    pub command: Vec<Bytes>,
    /// When it was called.
    pub since: Monotonic,
    /// When it was called by the wall clock, in milliseconds: the time at which keys expire for the
    /// script.
    pub now_ms: i64,
    /// The database and the protocol of its client, which it has changed for itself.
    pub own: (usize, Protocol),
    /// The effects of the batch so far, which are delivered when the script ends.
    pub held: Effects,
    /// If it runs inside EXEC: the replies so far, and the commands after it.
    pub transaction: Option<(Vec<Reply>, Vec<Vec<Bytes>>)>,
    /// It is to end in its next turn.
    pub killed: bool,
    /// Its client has disconnected; the session is closed when the script ends.
    pub hung_up: bool,
}

/// An end of the process that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shutdown {
    /// Whether to save a last snapshot; by default if there are save points.
    pub save: Option<bool>,
    /// Without waiting for replicas.
    pub now: bool,
    /// Exit even if the last save fails.
    pub force: bool,
    /// By a signal.
    pub signalled: bool,
    /// Until when replicas are waited for, while they are.
    pub deadline: Option<Monotonic>,
}

/// Data that is being read, which takes as long as `key-load-delay` says. Until it is all there,
/// there is none.
#[derive(Debug)]
pub struct Loading {
    /// When all is read.
    pub until: Monotonic,
    /// The wall-clock second at which it began.
    pub since: i64,
    /// Bytes of the file.
    pub len: usize,
    /// What is read.
    pub dbs: Vec<Db>,
    /// What for.
    pub purpose: Purpose,
}

/// What Redis's child process writes: what there was when it began, which is on the disk when it
/// ends. A node that goes down before leaves its disk as it was.
#[derive(Debug)]
pub struct Background {
    /// What is written.
    pub job: Job,
    /// When it began.
    pub began: Monotonic,
    /// When it began by the wall clock, in seconds.
    pub since: i64,
    /// When all is written. The periodic work sees it then, or later.
    pub until: Monotonic,
    /// How many keys there are to write.
    pub keys: usize,
}

impl Background {
    /// How many of the keys are written.
    pub fn processed(&self, now: Monotonic) -> usize {
        let whole = self.until.since(self.began).as_nanos();
        let share = now.since(self.began).as_nanos().min(whole) * self.keys as u128;
        share.checked_div(whole).and_then(|keys| usize::try_from(keys).ok()).unwrap_or(self.keys)
    }
}

/// What is written in the background.
#[derive(Debug)]
pub enum Job {
    /// A snapshot.
    Snapshot {
        /// All of it.
        snapshot: Bytes,
        /// The changes that it holds, of those that count for the next save point.
        dirty: u64,
    },
    /// A snapshot for the replicas that wait for it.
    ForReplicas {
        /// All of it, if it goes through a file, and the changes that it holds, as above. What goes
        /// over connections as it is written is no save.
        file: Option<(Bytes, u64)>,
    },
    /// The base of the append-only file.
    Rewrite {
        /// All of it.
        base: Bytes,
        /// `rdb` for a snapshot, `aof` for commands.
        extension: &'static str,
        /// Where in the file that is in memory the commands begin that are not in the base.
        behind: usize,
    },
}

/// What clients see of a node that loads what its master sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiving {
    /// LOADING.
    WithoutData,
    /// The data from before.
    BesideData,
}

/// What data is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To begin with.
    Start,
    /// For this client, which waits for a reply (DEBUG RELOAD).
    Client(ConnId),
    /// To follow the master that has sent it from here on.
    Master,
}

/// Which commands CLIENT PAUSE holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseMode {
    /// All of them.
    All,
    /// Commands that may write.
    Write,
}

impl Node {
    /// Stalls the node for `time`, from `now` or from the end of the stall that it is in.
    pub fn stall(&mut self, now: Monotonic, time: Duration) {
        self.stalled_until = Some(self.stalled_until.map_or(now, |until| until.max(now)) + time);
        self.stood_still = self.stood_still.saturating_add(time);
    }

    /// A node that has just started, with empty databases.
    pub fn new(config: Config, run_id: String, replication_id: String, started: Monotonic) -> Node {
        Node {
            dbs: (0..config.databases).map(|_| Db::default()).collect(),
            acl: Acl::new(&config.requirepass),
            scripts: Engine::editing(config.mutations.script_edit.clone()),
            config,
            clients: Clients::default(),
            persistence: Persistence::default(),
            debug: DebugSwitches::default(),
            libraries: Libraries::default(),
            busy: None,
            stats: Stats::default(),
            replication: Replication::new(replication_id),
            dialed: 0,
            run_id,
            started,
            paused: None,
            slowlog: SlowLog::default(),
            latency: latency::Monitor::default(),
            shutdown: None,
            stalled_until: None,
            stood_still: Duration::ZERO,
            out_of_memory: false,
            migration: None,
            targets: Targets::default(),
            loading: None,
            exiting: false,
            sentinel: None,
            cluster: None,
        }
    }

    /// Whether key events have a consumer. Without one, commands need not report them.
    pub fn wants_key_events(&self) -> bool {
        self.config.notify_keyspace_events != Notify::default()
            || !self.clients.watchers.is_empty()
            || !self.clients.waiting.is_empty()
            || self.clients.tracking.trackers > 0
            || !self.clients.tracking.is_empty()
    }

    /// Whether what commands do is written down, for replicas or for the disk.
    pub fn propagates(&self) -> bool {
        self.persistence.aof.state != LogState::Off || self.replication.streams()
    }

    /// What kind of server it is, as INFO and HELLO say.
    pub fn mode(&self) -> &'static str {
        match (&self.sentinel, &self.cluster) {
            (Some(_), _) => "sentinel",
            (None, Some(_)) => "cluster",
            (None, None) => "standalone",
        }
    }

    /// The name for the next connection that the node dials.
    pub fn next_dialed(&mut self) -> ConnId {
        self.dialed += 1;
        ConnId(ConnId::DIALED + self.dialed)
    }

    /// Answers a client whose command has waited and did nothing more, and has what it sent
    /// meanwhile read later in the step. Its session has been unblocked by the caller. Where the
    /// command has effects, the server finishes it.
    pub fn answer_waited(&mut self, conn: ConnId, reply: &Reply) {
        self.send(conn, reply);
        self.clients.command_over(conn);
        self.clients.woken.push_back(conn);
    }

    /// Which commands have to wait at the moment, if any: for the end of CLIENT PAUSE, or because
    /// replicas are to catch up.
    pub fn pause(&self) -> Option<PauseMode> {
        let catching_up = self.shutdown.is_some_and(|shutdown| shutdown.deadline.is_some());
        let for_cluster = self.cluster.as_ref().is_some_and(|cluster| cluster.pauses_writes());
        let handing_over = self.replication.failover.is_some() || for_cluster;
        match self.paused {
            Some((_, mode)) => Some(mode),
            None => (catching_up || handing_over).then_some(PauseMode::Write),
        }
    }

    /// Whether commands have to wait. Keys neither expire nor are evicted meanwhile, lest the data
    /// change under a failover.
    pub fn is_paused(&self) -> bool {
        self.pause().is_some()
    }

    /// How many replicas had answered within `min-replicas-max-lag` when the periodic work last
    /// looked.
    pub fn good_replicas(&self) -> usize {
        self.replication.good_replicas
    }

    /// Whether this is a replica whose link to its master is down, so that its data may be stale.
    pub fn is_stale(&self) -> bool {
        self.replication.master.as_ref().is_some_and(|link| !link.is_up())
    }

    /// The address of a replica of this node: the announced one, or that of its connection.
    pub fn replica_address(&self, conn: ConnId) -> String {
        let told = self.replication.replicas.get(&conn).map(|replica| replica.ip.clone());
        told.filter(|ip| !ip.is_empty()).unwrap_or_else(|| {
            let peer = self.clients.sessions.get(conn).map_or("", |session| &session.peer);
            peer.rsplit_once(':').map_or(peer, |(host, _)| host).to_owned()
        })
    }

    /// A replica as the log names it: its address and the port that it listens on.
    pub fn replica_name(&self, conn: ConnId) -> String {
        let port = self.replication.replicas.get(&conn).map_or(0, |replica| replica.port);
        format!("{}:{port}", self.replica_address(conn))
    }

    /// Whether a snapshot of the master is being received that is loaded as it comes
    /// (`repl-diskless-load`), and what becomes of clients meanwhile. Where it belongs to the
    /// history that this node stands in, they see the data so far.
    pub fn receiving(&self) -> Option<Receiving> {
        let link = self.replication.master.as_ref()?;
        let Stage::Transfer { position, payload: Payload::Marked(_) } = &link.stage else { return None };
        match self.config.repl_diskless_load {
            DisklessLoad::SwapDb => {}
            DisklessLoad::OnEmptyDb if self.dbs.iter().all(Db::is_empty) => {}
            DisklessLoad::OnEmptyDb | DisklessLoad::Disabled => return None,
        }
        let known = position.as_ref().is_some_and(|(id, _)| *id == self.replication.history.id);
        Some(if known { Receiving::BesideData } else { Receiving::WithoutData })
    }

    /// Gives up, as a process does that cannot go on: no reply is sent any more.
    pub fn abort(&mut self) {
        self.clients.sessions.iter_mut().for_each(|session| session.out.clear());
        self.exiting = true;
    }

    /// Replaces databases and libraries by those of a snapshot.
    ///
    /// # Errors
    /// When the code of a library does not load; all stays as it is then.
    pub fn take_in(&mut self, dbs: Vec<Db>, libraries: &[Bytes]) -> Result<(), rdb::RdbError> {
        let loaded = Libraries::of(&self.scripts, libraries);
        self.libraries = loaded.map_err(|_| rdb::RdbError::Damaged("the code of a library"))?;
        self.dbs = dbs;
        self.replication.own_expiries.clear();
        Ok(())
    }

    /// Whether what takes long is noted (`latency-monitor-threshold`).
    pub fn times_spikes(&self) -> bool {
        self.config.latency_monitor_threshold > 0
    }

    /// Adds a spike to the latency monitor if work other than a command has taken long since it
    /// began.
    pub fn note_spike(&mut self, env: &Env, event: &'static str, began: Option<Instant>) {
        if self.times_spikes() {
            let threshold_ms = self.config.latency_monitor_threshold;
            self.latency.note(event, env.wall.as_secs(), env.took(began), threshold_ms);
        }
    }

    /// Counts a value that is gone, if a server would have freed it in the background.
    pub fn count_freed(&mut self, value: &Value, lazily: bool) {
        let counts = lazily && is_worth_background(value, self.config.list_node_size);
        self.stats.lazily_freed += u64::from(counts);
    }

    /// All data was replaced: WATCH of any existing key makes EXEC fail.
    pub fn data_replaced(&mut self) {
        for session in self.clients.sessions.iter_mut() {
            session.watch_broken |= !session.watched.is_empty();
        }
    }

    /// Whether expired keys are only hidden, because deleting them is the master's to do.
    pub fn is_replica(&self) -> bool {
        self.replication.master.is_some()
    }
}
