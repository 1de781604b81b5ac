//! The whole state of one node: its data, its options, its connections. Behaviour is in other
//! modules, which work on this state.

pub mod clients;
mod cluster;
pub mod active_expiry;
pub mod latency;
pub mod lazy_free;
mod memory;
pub mod migration;
pub mod rates;
pub mod slowlog;
pub mod stats;
pub mod synced;

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

/// The whole state of a node: its data, its connections, its files and its roles.
#[derive(Debug)]
pub struct Node {
    /// The options, as CONFIG GET prints them.
    pub config: Config,
    /// The users with their permissions (ACL), and the log of denials.
    pub acl: Acl,
    /// The databases, by number.
    pub dbs: Vec<Db>,
    /// The connections, with their subscriptions and watched keys.
    pub clients: Clients,
    /// The files on disk, and those being written.
    pub persistence: Persistence,
    /// The switches that DEBUG sets.
    pub debug: DebugSwitches,
    /// The Lua engine, with the scripts that it has cached.
    pub scripts: Engine,
    /// The libraries that FUNCTION LOAD has loaded.
    pub libraries: Libraries,
    /// The script that exceeds its time limit, if one runs.
    pub busy: Option<Busy>,
    /// The counters that INFO prints and CONFIG RESETSTAT resets.
    pub stats: Stats,
    /// Its role in replication, as a master or a replica.
    pub replication: Replication,
    /// 40 hex digits that name this run of the process.
    pub run_id: String,
    /// The time at which the process started, by the monotonic clock.
    pub started: Monotonic,
    /// CLIENT PAUSE: the end of the pause, and the commands that it holds back.
    pub paused: Option<(Monotonic, PauseMode)>,
    /// The commands that took long.
    pub slowlog: SlowLog,
    /// The commands with large requests (COMMANDLOG).
    pub large_requests: SlowLog,
    /// The commands with large replies (COMMANDLOG).
    pub large_replies: SlowLog,
    /// Events that took longer than `latency-monitor-threshold`.
    pub latency: latency::Monitor,
    /// The end of the process that SHUTDOWN or a signal has requested.
    pub shutdown: Option<Shutdown>,
    /// The node does nothing before this time (DEBUG SLEEP, or a script that has just proved to be
    /// endless).
    pub stalled_until: Option<Monotonic>,
    /// The total time it was blocked so far (DEBUG SLEEP), which counts as part of the duration of
    /// commands.
    pub stood_still: Duration,
    /// Set while memory in use exceeds `maxmemory` and nothing more can be evicted.
    pub out_of_memory: bool,
    /// The running migration, if any; the node does nothing else until it ends.
    pub migration: Option<Migration>,
    /// The connections of earlier migrations.
    pub targets: Targets,
    /// The data set being loaded, if any.
    pub loading: Option<Loading>,
    /// Set after SHUTDOWN or a fatal error: the process ends with this step.
    pub exiting: bool,
    /// The number of connections dialed so far.
    pub dialed: u64,
    /// The state of a Sentinel, if the node is one. It has no data then, and other commands.
    pub sentinel: Option<Box<Sentinel>>,
    /// The state of a cluster node, if the node is one.
    pub cluster: Option<Box<Cluster>>,
}

/// The files of a node, and those being written.
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
    /// The job running in the background.
    pub background: Option<Background>,
    /// Begin a rewrite of the append-only file once no other background job runs and the
    /// transaction that asked for it is over. The effects of that transaction would otherwise be
    /// both in the base and after it, and be applied twice.
    pub rewrite_scheduled: bool,
    /// Begin a save under the same conditions.
    pub save_scheduled: bool,
    /// The last save to disk failed: writes are refused if `stop-writes-on-bgsave-error` is on.
    pub save_failed: bool,
    /// The client that asked for the append-only file to be loaded again, if any (DEBUG LOADAOF).
    pub reload_wanted: Option<ConnId>,
}

/// The switches of DEBUG, which tests of servers use.
#[derive(Debug)]
pub struct DebugSwitches {
    /// DEBUG SET-ACTIVE-EXPIRE: set if the periodic work removes expired keys. True by default.
    pub active_expire: bool,
    /// DEBUG PAUSE-CRON: the periodic work is suspended, and signals wait.
    pub cron_paused: bool,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: payloads are restored regardless of their checksums.
    pub skip_checksums: bool,
    /// DEBUG REPLYBUFFER: the rules by which reply buffers are resized.
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

/// A script that takes so long that the node serves other clients in between. By a node's own clock
/// the script continues in the node's next turn. A script that used up its budget has no next turn:
/// it counts as running until it is killed.
#[derive(Debug)]
pub struct Busy {
    /// The connection that called the script.
    pub conn: ConnId,
    /// The suspended interpreter.
    pub script: Suspended,
    /// The script's access to the node.
    pub host: Box<dyn Host>,
    /// Set once the script has called a command that writes: it can no longer be killed.
    pub wrote: bool,
    /// The name of the function, if it is not a script.
    pub function: Option<String>,
    /// The command that called it, such as EVAL or FCALL with its arguments.
    pub command: Vec<Bytes>,
    /// The time of the call.
    pub since: Monotonic,
    /// The time of the call by the wall clock, in milliseconds. Expiry of keys uses this time for
    /// the script.
    pub now_ms: i64,
    /// The database and the protocol that the script has selected for itself.
    pub own: (usize, Protocol),
    /// The effects of the batch so far, which are delivered when the script ends.
    pub held: Effects,
    /// Inside EXEC: the replies so far, and the commands after the script.
    pub transaction: Option<(Vec<Reply>, Vec<Vec<Bytes>>)>,
    /// Set after SCRIPT KILL: the script ends in its next turn.
    pub killed: bool,
    /// Set after its client has disconnected; the session is closed when the script ends.
    pub hung_up: bool,
}

/// A requested end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shutdown {
    /// Set to save or not to save a last snapshot; `None` saves if there are save points.
    pub save: Option<bool>,
    /// Do not wait for replicas.
    pub now: bool,
    /// Exit even if the last save fails.
    pub force: bool,
    /// Requested by a signal.
    pub signalled: bool,
    /// The end of the wait for replicas, while the node waits for them.
    pub deadline: Option<Monotonic>,
}

/// A data set being loaded, which takes as long as `key-load-delay` says. No part of it is visible
/// before all of it is loaded.
#[derive(Debug)]
pub struct Loading {
    /// The time at which all keys are loaded and become visible.
    pub until: Monotonic,
    /// The wall-clock second at which the loading began.
    pub since: i64,
    /// The length of the file in bytes.
    pub len: usize,
    /// The databases that replace the node's own at the end.
    pub dbs: Vec<Db>,
    /// The reason for loading, which decides what follows.
    pub purpose: Purpose,
}

/// The work of a child process in Redis: it writes the data as of its beginning, and the result is
/// on disk at its end. If the node goes down before, its disk is unchanged.
#[derive(Debug)]
pub struct Background {
    /// The kind of job, with the bytes that it writes.
    pub job: Job,
    /// The time of its beginning.
    pub began: Monotonic,
    /// Its beginning by the wall clock, in seconds.
    pub since: i64,
    /// The time at which all is written. The periodic work notices it then or later.
    pub until: Monotonic,
    /// The number of keys to write.
    pub keys: usize,
}

impl Background {
    /// Returns the number of keys written so far.
    pub fn processed(&self, now: Monotonic) -> usize {
        let whole = self.until.since(self.began).as_nanos();
        let share = now.since(self.began).as_nanos().min(whole) * self.keys as u128;
        share.checked_div(whole).and_then(|keys| usize::try_from(keys).ok()).unwrap_or(self.keys)
    }
}

/// A background job: a save, a snapshot for replicas, or a rewrite of the append-only file.
#[derive(Debug)]
pub enum Job {
    /// A snapshot to disk, begun by BGSAVE or a save point.
    Snapshot {
        /// The whole file.
        snapshot: Bytes,
        /// The number of changes in it that count towards the next save point.
        dirty: u64,
    },
    /// A snapshot for the replicas that wait for one.
    ForReplicas {
        /// The whole file and its number of changes, as above, if the snapshot goes through a file.
        /// A snapshot streamed over connections counts as no save.
        file: Option<(Bytes, u64)>,
        /// True if the version of the snapshot cannot hold a value, so that the job fails.
        fails: bool,
    },
    /// The base of the append-only file.
    Rewrite {
        /// The whole file.
        base: Bytes,
        /// `rdb` for a snapshot, `aof` for commands.
        extension: &'static str,
        /// The position in the AOF in memory at which the commands begin that are not in the base.
        behind: usize,
    },
}

/// The data that clients see while the node loads the snapshot of its master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiving {
    /// No data: commands get the error LOADING.
    WithoutData,
    /// The data from before the snapshot (`repl-diskless-load swapdb`).
    BesideData,
}

/// The reason for loading data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The start of the node: its files are loaded.
    Start,
    /// A request of this client, which waits for a reply (DEBUG RELOAD).
    Client(ConnId),
    /// Full resynchronization: the node then follows the master that sent the data.
    Master,
}

/// The commands that CLIENT PAUSE holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseMode {
    /// All commands.
    All,
    /// Commands that may write.
    Write,
}

impl Node {
    /// Stalls the node for `time`, from `now` or from the end of its present stall.
    pub fn stall(&mut self, now: Monotonic, time: Duration) {
        self.stalled_until = Some(self.stalled_until.map_or(now, |until| until.max(now)) + time);
        self.stood_still = self.stood_still.saturating_add(time);
    }

    /// Returns a node that has just started, with empty databases.
    pub fn new(config: Config, run_id: String, replication_id: String, started: Monotonic) -> Node {
        Node {
            dbs: (0..config.keyspace.databases).map(|_| Db::default()).collect(),
            acl: Acl::new(&config.security.requirepass),
            scripts: Engine::new(config.generation, config.mutations.script_edit.clone()),
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
            large_requests: SlowLog::default(),
            large_replies: SlowLog::default(),
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

    /// Returns true if key events have a consumer. Without one, commands need not report them.
    pub fn wants_key_events(&self) -> bool {
        self.config.keyspace.notify_keyspace_events != Notify::default()
            || !self.clients.watchers.is_empty()
            || !self.clients.waiting.is_empty()
            || self.clients.tracking.trackers > 0
            || !self.clients.tracking.is_empty()
    }

    /// Returns true if commands are propagated to replicas, to the AOF or to the target of a slot
    /// migration.
    pub fn propagates(&self) -> bool {
        self.persistence.aof.state != LogState::Off
            || self.replication.streams()
            || self.cluster.as_ref().is_some_and(|cluster| cluster.exports())
    }

    /// Returns the kind of server as in INFO and HELLO: `sentinel`, `cluster` or `standalone`.
    pub fn mode(&self) -> &'static str {
        match (&self.sentinel, &self.cluster) {
            (Some(_), _) => "sentinel",
            (None, Some(_)) => "cluster",
            (None, None) => "standalone",
        }
    }

    /// Returns the id for the next connection that the node dials.
    pub fn next_dialed(&mut self) -> ConnId {
        self.dialed += 1;
        ConnId(ConnId::DIALED + self.dialed)
    }

    /// Sends the reply of a command that has waited and has no further effects. The input that the
    /// client sent during the wait is processed later in the step. The caller has unblocked the
    /// session. A command with effects is finished by the server instead.
    pub fn answer_waited(&mut self, conn: ConnId, reply: &Reply) {
        self.send(conn, reply);
        self.clients.command_over(conn);
        self.clients.woken.push_back(conn);
    }

    /// Returns the commands that have to wait now, if any: until CLIENT PAUSE ends, or while
    /// replicas catch up before a shutdown or a failover.
    pub fn pause(&self) -> Option<PauseMode> {
        let catching_up = self.shutdown.is_some_and(|shutdown| shutdown.deadline.is_some());
        let for_cluster = self.cluster.as_ref().is_some_and(|cluster| cluster.pauses_writes());
        let handing_over = self.replication.failover.is_some() || for_cluster;
        match self.paused {
            Some((_, mode)) => Some(mode),
            None => (catching_up || handing_over).then_some(PauseMode::Write),
        }
    }

    /// Returns true if commands have to wait. Keys neither expire nor are evicted then, because the
    /// data must not change during a failover.
    pub fn is_paused(&self) -> bool {
        self.pause().is_some()
    }

    /// Returns the number of replicas that had answered within `min-replicas-max-lag` at the last
    /// run of the periodic work.
    pub fn good_replicas(&self) -> usize {
        self.replication.good_replicas
    }

    /// Returns true if this is a replica whose link to its master is down, so that its data may be
    /// stale.
    pub fn is_stale(&self) -> bool {
        self.replication.master.as_ref().is_some_and(|link| !link.is_up())
    }

    /// Returns the address of a replica of this node: the announced one, or that of its connection.
    pub fn replica_address(&self, conn: ConnId) -> String {
        let told = self.replication.replicas.get(&conn).map(|replica| replica.ip.clone());
        told.filter(|ip| !ip.is_empty()).unwrap_or_else(|| {
            let peer = self.clients.sessions.get(conn).map_or("", |session| &session.peer);
            peer.rsplit_once(':').map_or(peer, |(host, _)| host).to_owned()
        })
    }

    /// Returns the name of a replica in the log: its address and the port that it listens on.
    pub fn replica_name(&self, conn: ConnId) -> String {
        let port = self.replication.replicas.get(&conn).map_or(0, |replica| replica.port);
        format!("{}:{port}", self.replica_address(conn))
    }

    /// Returns what clients see while the node receives a snapshot of its master that it loads as
    /// it arrives (`repl-diskless-load`); `None` if it receives none. Clients see the data from
    /// before if the snapshot belongs to the same history as that data.
    pub fn receiving(&self) -> Option<Receiving> {
        let link = self.replication.master.as_ref()?;
        let Stage::Transfer { position, payload: Payload::Marked(_) } = &link.stage else { return None };
        match self.config.replication.diskless_load {
            DisklessLoad::SwapDb => {}
            DisklessLoad::OnEmptyDb if self.dbs.iter().all(Db::is_empty) => {}
            DisklessLoad::OnEmptyDb | DisklessLoad::Disabled => return None,
        }
        let known = position.as_ref().is_some_and(|(id, _)| *id == self.replication.history.id);
        Some(if known { Receiving::BesideData } else { Receiving::WithoutData })
    }

    /// Ends the process as after a fatal error: no further reply is sent.
    pub fn abort(&mut self) {
        self.clients.sessions.iter_mut().for_each(|session| session.out.clear());
        self.exiting = true;
    }

    /// Replaces databases and libraries by those of a snapshot.
    ///
    /// # Errors
    /// If the code of a library does not load; nothing is replaced then.
    pub fn take_in(&mut self, dbs: Vec<Db>, libraries: &[Bytes]) -> Result<(), rdb::RdbError> {
        let loaded = Libraries::of(&self.scripts, libraries);
        self.libraries = loaded.map_err(|_| rdb::RdbError::Damaged("the code of a library"))?;
        self.dbs = dbs;
        self.replication.own_expiries.clear();
        Ok(())
    }

    /// Returns true if spikes are recorded (`latency-monitor-threshold`).
    pub fn times_spikes(&self) -> bool {
        self.config.monitoring.latency_monitor_threshold > 0
    }

    /// Adds a spike to the latency monitor if work other than a command has taken long since
    /// `began`.
    pub fn note_spike(&mut self, env: &Env, event: &'static str, began: Option<Instant>) {
        if self.times_spikes() {
            let threshold_ms = self.config.monitoring.latency_monitor_threshold;
            self.latency.note(event, env.wall.as_secs(), env.took(began), threshold_ms);
        }
    }

    /// Counts a deleted value if a server would have freed it in the background.
    pub fn count_freed(&mut self, value: &Value, lazily: bool) {
        let counts = lazily && is_worth_background(value, self.config.keyspace.list_node_size);
        self.stats.lazily_freed += u64::from(counts);
    }

    /// Marks every watch as broken after all data was replaced: EXEC fails for every client that
    /// watches a key.
    pub fn data_replaced(&mut self) {
        for session in self.clients.sessions.iter_mut() {
            session.watch_broken |= !session.watched.is_empty();
        }
    }

    /// Returns true if the node is a replica: expired keys are hidden, and only its master deletes
    /// them.
    pub fn is_replica(&self) -> bool {
        self.replication.master.is_some()
    }
}
