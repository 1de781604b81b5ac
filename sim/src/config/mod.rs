//! The options of a node, as for CONFIG GET and CONFIG SET, with the defaults of `redis-server`
//! 7.0.

use std::fmt;

mod announce;
mod cluster;
mod diskless_load;
mod generations;
mod large_commands;
mod mutations;
mod notify;

pub mod file;
pub mod options;

pub use announce::Announce;
pub use cluster::ClusterOptions;
pub use diskless_load::DisklessLoad;
pub use large_commands::LargeCommands;
pub use mutations::Mutations;
pub use notify::Notify;

use crate::{
    generation::Generation,
    keyspace::{Encodings, ExpiryRule, Lfu},
    log::Level,
};

/// The clients that may use a command guarded by an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// No client may use it.
    No,
    /// Every client.
    Yes,
    /// Clients on the node's own host.
    Local,
}

impl Allowed {
    /// Returns the option's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Allowed::No => "no",
            Allowed::Yes => "yes",
            Allowed::Local => "local",
        }
    }

    /// Returns the meaning of the option's word; [`Allowed::No`] for any other text.
    pub fn named(name: &str) -> Allowed {
        [Allowed::Yes, Allowed::Local]
            .into_iter()
            .find(|allowed| allowed.name() == name)
            .unwrap_or(Allowed::No)
    }

    /// Returns true if a client may use the command; `is_local` says that it is on the node's own
    /// host.
    pub fn allows(self, is_local: bool) -> bool {
        self == Allowed::Yes || self == Allowed::Local && is_local
    }
}

/// The time at which a write reaches the disk, which decides what survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// `appendfsync always`: before the reply is sent.
    Always,
    /// `appendfsync everysec`: once a second.
    #[default]
    EverySecond,
    /// `appendfsync no`: when the operating system decides; here that is never before a crash.
    No,
}

/// The policy to choose keys to evict when memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eviction {
    /// Writes are refused with OOM instead.
    #[default]
    NoEviction,
    /// The least recently used of all keys.
    AllKeysLru,
    /// The least frequently used of all keys.
    AllKeysLfu,
    /// A random key of all keys.
    AllKeysRandom,
    /// The least recently used key that has an expiry.
    VolatileLru,
    /// The least frequently used key that has an expiry.
    VolatileLfu,
    /// Any key that has an expiry.
    VolatileRandom,
    /// The key that expires soonest.
    VolatileTtl,
}

/// The values that are freed in the background, as far as options select them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LazyFree {
    /// Values of evicted keys.
    pub eviction: bool,
    /// Values of expired keys.
    pub expire: bool,
    /// Values of overwritten keys.
    pub server_del: bool,
    /// Values of keys deleted by DEL.
    pub user_del: bool,
    /// Values of keys deleted by FLUSHALL and FLUSHDB without SYNC or ASYNC.
    pub user_flush: bool,
}

impl Fsync {
    const ALL: [(Fsync, &'static str); 3] =
        [(Fsync::Always, "always"), (Fsync::EverySecond, "everysec"), (Fsync::No, "no")];

    /// Returns the value in `redis.conf`, such as `everysec`.
    pub fn name(self) -> &'static str {
        Fsync::ALL[self as usize].1
    }

    /// Returns the policy of this name; the default for any other text.
    pub fn named(name: &str) -> Fsync {
        Fsync::ALL.iter().find(|(_, known)| *known == name).map_or_else(Fsync::default, |(fsync, _)| *fsync)
    }
}

impl Eviction {
    const ALL: [(Eviction, &'static str); 8] = [
        (Eviction::NoEviction, "noeviction"),
        (Eviction::AllKeysLru, "allkeys-lru"),
        (Eviction::AllKeysLfu, "allkeys-lfu"),
        (Eviction::AllKeysRandom, "allkeys-random"),
        (Eviction::VolatileLru, "volatile-lru"),
        (Eviction::VolatileLfu, "volatile-lfu"),
        (Eviction::VolatileRandom, "volatile-random"),
        (Eviction::VolatileTtl, "volatile-ttl"),
    ];

    /// Returns the value in `redis.conf`, such as `allkeys-lru`.
    pub fn name(self) -> &'static str {
        Eviction::ALL[self as usize].1
    }

    /// True for the LFU policies.
    pub fn counts_uses(self) -> bool {
        matches!(self, Eviction::AllKeysLfu | Eviction::VolatileLfu)
    }

    /// True for the LRU and LFU policies.
    pub fn heeds_use(self) -> bool {
        self.counts_uses() || matches!(self, Eviction::AllKeysLru | Eviction::VolatileLru)
    }

    /// Returns the policy of this name; the default for any other text.
    pub fn named(name: &str) -> Eviction {
        let known = Eviction::ALL.iter().find(|(_, known)| *known == name);
        known.map_or_else(Eviction::default, |(eviction, _)| *eviction)
    }
}

/// An amount of memory, absolute or as a percentage of `maxmemory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of `maxmemory`.
    Percent(u8),
}

impl Share {
    /// Returns the limit in bytes for this `maxmemory`; a percentage of no limit is no limit (0).
    pub fn of(self, maxmemory: u64) -> u64 {
        match self {
            Share::Bytes(bytes) => bytes,
            Share::Percent(percent) => maxmemory / 100 * u64::from(percent),
        }
    }

    /// Parses the printed form; invalid text counts as 0.
    pub fn parse(text: &str) -> Share {
        match text.strip_suffix('%') {
            Some(percent) => Share::Percent(percent.parse().unwrap_or(0)),
            None => Share::Bytes(text.parse().unwrap_or(0)),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Bytes(bytes) => write!(f, "{bytes}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The limit of unread output above which a client is disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimit {
    /// Disconnect immediately above this many bytes; 0 for never.
    pub hard: u64,
    /// Disconnect above this many bytes for `seconds`; 0 for never.
    pub soft: u64,
    /// The time in seconds for which `soft` may be exceeded.
    pub seconds: u64,
}

impl BufferLimit {
    /// Returns all three limits as CONFIG GET prints them.
    pub fn print(limits: &[BufferLimit; 3]) -> String {
        let class = |(name, limit): (&str, &BufferLimit)| {
            format!("{name} {} {} {}", limit.hard, limit.soft, limit.seconds)
        };
        ["normal", "slave", "pubsub"].into_iter().zip(limits).map(class).collect::<Vec<_>>().join(" ")
    }

    /// Parses the text of [`BufferLimit::print`]; missing numbers mean no limit.
    pub fn parse(text: &str) -> [BufferLimit; 3] {
        let mut numbers = text.split(' ').filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap_or(0);
        [(); 3].map(|()| BufferLimit { hard: next(), soft: next(), seconds: next() })
    }
}

/// The options a node reads while it runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// The server that the node imitates. Default Redis 8.2.
    pub generation: Generation,
    /// `port`: the TCP port to listen on. Default 6379.
    pub port: u16,
    /// `tcp-backlog`: the number of connections that may wait to be accepted.
    pub tcp_backlog: u32,
    /// `databases`: the number of databases that SELECT accepts. Default 16.
    pub databases: usize,
    /// `requirepass`; empty for none.
    pub requirepass: String,
    /// `acl-pubsub-default`: set if new users may access all channels instead of none.
    pub acl_pubsub_default: bool,
    /// `acllog-max-len`: the number of entries kept for ACL LOG. Default 128.
    pub acllog_max_len: usize,
    /// `user`: the words of each line that defines a user at the start.
    pub users: Vec<Vec<String>>,
    /// `rename-command`: command names in lower case, each with its new name; an empty name
    /// disables the command.
    pub renames: Vec<(String, String)>,
    /// `aclfile`; empty for none.
    pub aclfile: String,
    /// `tracking-table-max-keys`; 0 for no limit.
    pub tracking_table_max_keys: usize,
    /// `masterauth`; empty for none.
    pub masterauth: String,
    /// `masteruser`; empty for the default user.
    pub masteruser: String,
    /// `maxclients`: the greatest number of connections at a time; further ones are refused.
    pub maxclients: usize,
    /// `maxmemory` in bytes; 0 for no limit.
    pub maxmemory: u64,
    /// `maxmemory-clients`: the limit for all clients together; 0 for no limit.
    pub maxmemory_clients: Share,
    /// `maxmemory-policy`: the keys to evict above `maxmemory`. Default `noeviction`.
    pub maxmemory_policy: Eviction,
    /// `maxmemory-samples`: the number of keys sampled for each eviction.
    pub maxmemory_samples: usize,
    /// `lfu-log-factor` and `lfu-decay-time`: the growth and the decay of access counters.
    pub lfu: Lfu,
    /// `lazyfree-lazy-*`
    pub lazy_free: LazyFree,
    /// `timeout` in seconds after which a silent client is disconnected; 0 for never.
    pub timeout: u64,
    /// `extended-redis-compatibility`: Valkey calls itself Redis in HELLO.
    pub extended_redis_compatibility: bool,
    /// `slowlog-log-slower-than` in microseconds; negative for never.
    pub slowlog_slower_than: i64,
    /// `slowlog-max-len`: the number of commands that SLOWLOG keeps. Default 128.
    pub slowlog_max_len: usize,
    /// `commandlog-*` about requests.
    pub large_requests: LargeCommands,
    /// `commandlog-*` about replies.
    pub large_replies: LargeCommands,
    /// `latency-monitor-threshold` in milliseconds from which an event is a spike; 0 for never.
    pub latency_monitor_threshold: u64,
    /// `latency-tracking`: set if the durations of commands are recorded.
    pub latency_tracking: bool,
    /// `latency-tracking-info-percentiles`: the percentiles in INFO latencystats.
    pub latency_percentiles: Vec<f64>,
    /// `shutdown-timeout`: the time in seconds that SHUTDOWN waits for replicas.
    pub shutdown_timeout: u64,
    /// `stop-writes-on-bgsave-error`: writes are refused after a failed background save.
    pub stop_writes_on_bgsave_error: bool,
    /// `enable-debug-command`. It is on by default, unlike in `redis-server`, because a laboratory
    /// needs DEBUG.
    pub enable_debug_command: Allowed,
    /// `enable-module-command`: the clients that may run MODULE. Default: none.
    pub enable_module_command: Allowed,
    /// `enable-protected-configs`: the clients whose CONFIG SET may change where data is stored.
    pub enable_protected_configs: Allowed,
    /// `protected-mode`: while the default user needs no password, only clients on the node's own
    /// host are served. It applies only if strangers may connect
    /// ([`Env::strangers`](crate::env::Env::strangers)).
    pub protected_mode: bool,
    /// `hz`: runs of the periodic work per second, which bounds the delay of active expiry.
    pub hz: u32,
    /// `appendonly`: set if the node writes an append-only file.
    pub appendonly: bool,
    /// `appendfsync`: always, every second, or left to the operating system.
    pub appendfsync: Fsync,
    /// `aof-timestamp-enabled`: the append-only file records when its commands were written, for
    /// `redis-check-aof`.
    pub aof_timestamps: bool,
    /// `auto-aof-rewrite-percentage`: the growth of the append-only file over its base that
    /// triggers a rewrite, in percent; 0 for no automatic rewrite.
    pub aof_rewrite_percentage: u64,
    /// `auto-aof-rewrite-min-size` in bytes: smaller files are not rewritten automatically.
    pub aof_rewrite_min_size: u64,
    /// The duration of a background sync (`appendfsync everysec`), in milliseconds. It shows the
    /// effect of a slow or stuck disk on the promise of one second. Not an option of Redis.
    pub fsync_ms: u64,
    /// `save` points: pairs of seconds and the number of changes that triggers a save after them.
    pub save: Vec<(u64, u64)>,
    /// `replicaof`: host and port of the master to follow from the start.
    pub replicaof: Option<(String, u16)>,
    /// `replica-read-only`: set if a replica refuses writes of its clients.
    pub replica_read_only: bool,
    /// `replica-serve-stale-data`: set if a replica answers while its link to the master is down.
    pub replica_serve_stale_data: bool,
    /// `min-replicas-to-write`: a master with fewer good replicas refuses writes; 0 for no such
    /// limit.
    pub min_replicas_to_write: usize,
    /// `replica-announce-ip`, `replica-announce-port`, `replica-announced` and `replica-priority`:
    /// the properties that a replica announces to its master.
    pub announce: Announce,
    /// `min-replicas-max-lag`: the age in seconds of the last acknowledgement up to which a replica
    /// counts as good.
    pub min_replicas_max_lag: u64,
    /// `repl-timeout`: the silence in seconds after which a replication link is closed.
    pub repl_timeout: u64,
    /// `repl-ping-replica-period`: the time in seconds between two PINGs of a master to its
    /// replicas.
    pub repl_ping_period: u64,
    /// `repl-diskless-sync`: snapshots for replicas go to the socket, after a delay for more
    /// replicas to join.
    pub repl_diskless_sync: bool,
    /// `repl-diskless-sync-delay`: the time in seconds for which a snapshot waits for more
    /// replicas.
    pub repl_diskless_sync_delay: u64,
    /// `repl-backlog-size`: the bytes of the stream kept for partial resynchronization.
    pub repl_backlog_size: usize,
    /// `repl-backlog-ttl`: the time in seconds for which a master without replicas keeps the
    /// backlog; 0 for no limit.
    pub repl_backlog_ttl: u64,
    /// `busy-reply-threshold`: the time in milliseconds after which other clients get BUSY during a
    /// script.
    pub busy_reply_threshold: u64,
    /// `proto-max-bulk-len`: the length in bytes above which an argument is refused.
    pub proto_max_bulk_len: usize,
    /// `client-query-buffer-limit`: the bytes of unread input above which a client is disconnected.
    pub client_query_buffer_limit: usize,
    /// `client-output-buffer-limit`: the limits for clients, replicas and subscribers, in this
    /// order.
    pub output_limits: [BufferLimit; 3],
    /// `notify-keyspace-events`: the classes of published events. Default: none.
    pub notify_keyspace_events: Notify,
    /// The number of Lua instructions after which a script counts as endless and the node as busy,
    /// if scripts do not run by a clock; see [`Env::script_clock`](crate::env::Env::script_clock).
    /// Not an option of Redis, which counts time: in the simulator a script takes no time, and a
    /// number of instructions is the same on every machine.
    pub script_budget: u64,
    /// `hash-max-listpack-entries` and its siblings: the sizes up to which values have compact
    /// encodings.
    pub encodings: Encodings,
    /// `list-max-listpack-size`: the elements in a node of a list, or its size from -1 (4
    /// kilobytes) to -5 (64). Snapshots split lists into such nodes.
    pub list_node_size: i32,
    /// `rdbcompression`: set if snapshots and DUMP compress long strings.
    pub rdb_compression: bool,
    /// The file of the options, which CONFIG REWRITE writes; empty for none.
    pub config_file: String,
    /// `loglevel`: lines of lower importance are not logged. Default `notice`.
    pub loglevel: Level,
    /// The process id in INFO. A simulated node is the only process of its machine, and has id 1.
    pub process_id: u32,
    /// `bind`: the addresses that the node listens on.
    pub bind: String,
    /// `bind-source-addr`: the source address of connections to a master; any if empty.
    pub bind_source_addr: String,
    /// `dbfilename`: the file of the snapshot.
    pub dbfilename: String,
    /// `appenddirname`: the folder of the append-only files.
    pub appenddirname: String,
    /// `appendfilename`: the prefix of the names of the append-only files.
    pub appendfilename: String,
    /// `aof-load-truncated`: an append-only file with an incomplete command at its end is cut off
    /// there.
    pub aof_load_truncated: bool,
    /// `aof-use-rdb-preamble`: the base of the append-only files is a snapshot.
    pub aof_use_rdb_preamble: bool,
    /// `aof-disable-auto-gc`: append-only files that are no longer needed are kept.
    pub aof_disable_auto_gc: bool,
    /// `no-appendfsync-on-rewrite`: while a background job runs, the operating system decides when
    /// to sync.
    pub no_appendfsync_on_rewrite: bool,
    /// `key-load-delay`: microseconds to load each key; a negative number is the keys loaded per
    /// microsecond.
    pub key_load_delay: i64,
    /// `rdb-key-save-delay`: microseconds to save each key; a negative number is the keys saved per
    /// microsecond.
    pub rdb_key_save_delay: i64,
    /// `loading-process-events-interval-bytes`: the number of bytes of a file between two turns of
    /// clients; 0 for no turns.
    pub loading_process_events_interval_bytes: u64,
    /// `repl-diskless-load`: the place of a snapshot that a replica receives, disk or memory.
    pub repl_diskless_load: DisklessLoad,
    /// `repl-diskless-sync-max-replicas`: a snapshot begins immediately with this many waiting
    /// replicas; 0 to always wait for the delay.
    pub repl_diskless_sync_max_replicas: usize,
    /// `replica-ignore-disk-write-errors`: set if a replica continues when its disk fails.
    pub replica_ignore_disk_write_errors: bool,
    /// `propagation-error-behavior`: `ignore`, or else the process ends when a command of the
    /// master fails.
    pub propagation_error_behavior: String,
    /// `shutdown-on-sigint`: the options of the SHUTDOWN that the signal triggers.
    pub shutdown_on_sigint: String,
    /// `shutdown-on-sigterm`: the options of the SHUTDOWN that SIGTERM triggers.
    pub shutdown_on_sigterm: String,
    /// `dir`: the data folder that the node reports. The program that starts the node chooses the
    /// real one.
    pub dir: String,
    /// `logfile`: the file of the log; empty for the standard output.
    pub logfile: String,
    /// `unixsocket`: the path of the socket file to listen at; empty for none.
    pub unixsocket: String,
    /// `unixsocketperm`: the permissions of that file, in octal digits; 0 to keep its initial
    /// permissions.
    pub unixsocketperm: u32,
    /// The intentional bugs of the node.
    pub mutations: Mutations,
    /// Options that are stored and reported but have no effect here, by name.
    pub others: std::collections::BTreeMap<String, String>,
    /// The options of Redis Cluster.
    pub cluster: ClusterOptions,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            generation: Generation::default(),
            port: 6379,
            tcp_backlog: 511,
            databases: 16,
            requirepass: String::new(),
            acl_pubsub_default: false,
            acllog_max_len: 128,
            users: Vec::new(),
            renames: Vec::new(),
            aclfile: String::new(),
            tracking_table_max_keys: 1_000_000,
            masterauth: String::new(),
            masteruser: String::new(),
            maxclients: 10_000,
            maxmemory: 0,
            maxmemory_clients: Share::Bytes(0),
            maxmemory_policy: Eviction::NoEviction,
            maxmemory_samples: 5,
            lfu: Lfu::default(),
            lazy_free: LazyFree::default(),
            timeout: 0,
            extended_redis_compatibility: false,
            slowlog_slower_than: 10_000,
            slowlog_max_len: 128,
            large_requests: LargeCommands::default(),
            large_replies: LargeCommands::default(),
            latency_monitor_threshold: 0,
            latency_tracking: true,
            latency_percentiles: vec![50.0, 99.0, 99.9],
            shutdown_timeout: 10,
            stop_writes_on_bgsave_error: true,
            enable_debug_command: Allowed::Yes,
            enable_module_command: Allowed::No,
            enable_protected_configs: Allowed::No,
            protected_mode: true,
            hz: 10,
            appendonly: false,
            aof_timestamps: false,
            aof_rewrite_percentage: 100,
            aof_rewrite_min_size: 64 << 20,
            appendfsync: Fsync::EverySecond,
            fsync_ms: 0,
            save: vec![(3600, 1), (300, 100), (60, 10_000)],
            replicaof: None,
            replica_read_only: true,
            replica_serve_stale_data: true,
            min_replicas_to_write: 0,
            announce: Announce::default(),
            min_replicas_max_lag: 10,
            repl_timeout: 60,
            repl_ping_period: 10,
            repl_diskless_sync: true,
            repl_diskless_sync_delay: 5,
            repl_backlog_size: 1 << 20,
            repl_backlog_ttl: 3600,
            busy_reply_threshold: 5000,
            proto_max_bulk_len: 512 << 20,
            client_query_buffer_limit: 1 << 30,
            output_limits: [
                BufferLimit { hard: 0, soft: 0, seconds: 0 },
                BufferLimit { hard: 256 << 20, soft: 64 << 20, seconds: 60 },
                BufferLimit { hard: 32 << 20, soft: 8 << 20, seconds: 60 },
            ],
            notify_keyspace_events: Notify::default(),
            script_budget: 100_000_000,
            encodings: Encodings::default(),
            list_node_size: -2,
            rdb_compression: true,
            config_file: String::new(),
            loglevel: Level::Notice,
            process_id: 1,
            bind: "* -::*".into(),
            bind_source_addr: String::new(),
            dbfilename: "dump.rdb".into(),
            appenddirname: "appendonlydir".into(),
            appendfilename: "appendonly.aof".into(),
            aof_load_truncated: true,
            aof_use_rdb_preamble: true,
            aof_disable_auto_gc: false,
            no_appendfsync_on_rewrite: false,
            key_load_delay: 0,
            rdb_key_save_delay: 0,
            loading_process_events_interval_bytes: 2 << 20,
            repl_diskless_load: DisklessLoad::Disabled,
            repl_diskless_sync_max_replicas: 0,
            replica_ignore_disk_write_errors: false,
            propagation_error_behavior: "ignore".into(),
            shutdown_on_sigint: "default".into(),
            shutdown_on_sigterm: "default".into(),
            dir: "/data".into(),
            logfile: String::new(),
            unixsocket: String::new(),
            unixsocketperm: 0,
            mutations: Mutations::default(),
            others: std::collections::BTreeMap::new(),
            cluster: ClusterOptions::default(),
        }
    }
}

impl Config {
    /// Returns the rule for keys that have expired at `now_ms` of the wall clock.
    pub fn expiry_rule(&self, now_ms: i64) -> ExpiryRule {
        if self.mutations.expire_at_the_millisecond {
            ExpiryRule::early(now_ms)
        } else {
            ExpiryRule::at(now_ms)
        }
    }

    /// Returns `save` as CONFIG GET prints it.
    pub fn save_points(&self) -> String {
        self.save
            .iter()
            .map(|(seconds, changes)| format!("{seconds} {changes}"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns `replicaof` as two words; empty on a master.
    pub fn master_address(&self) -> String {
        self.replicaof.as_ref().map_or(String::new(), |(host, port)| format!("{host} {port}"))
    }

    /// Sets `replicaof` from the text of [`Config::master_address`].
    pub fn set_master_address(&mut self, text: &str) {
        let address =
            text.split_once(' ').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        self.replicaof = address;
    }

    /// Sets `save` from the text of [`Config::save_points`]; words that are not numbers are
    /// skipped.
    pub fn set_save_points(&mut self, text: &str) {
        let numbers: Vec<u64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        self.save = numbers.as_chunks::<2>().0.iter().map(|&[seconds, changes]| (seconds, changes)).collect();
    }
}
