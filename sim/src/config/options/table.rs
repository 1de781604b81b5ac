//! The table of all options, one row per option.

use super::{
    Change::{self, Free, Never, Protected},
    Field::{self, Kept},
    Kind::{self, Checked, CheckedText, Choice, Flag, Integer, Memory, MemoryOrPercent, Text},
    Opt,
    values::{
        buffer_limits, defragmentation, events, host_name, master, no_tls, no_tls_port, oom_scores,
        percentiles, print_percentiles, process_title, save_points, shutdown_options,
    },
};
use crate::{
    config::{Allowed, BufferLimit, Config, DisklessLoad, Eviction, Fsync, Notify, Share},
    log::Level,
};

macro_rules! number {
    ($($field:ident).+) => {
        Field::Live {
            get: |config| config.$($field).+.to_string(),
            set: |config, value| config.$($field).+ = value.parse().unwrap_or(config.$($field).+),
        }
    };
}
macro_rules! flag {
    ($($field:ident).+) => {
        Field::Live {
            get: |config| if config.$($field).+ { "yes" } else { "no" }.to_owned(),
            set: |config, value| config.$($field).+ = value == "yes",
        }
    };
}
macro_rules! allowed {
    ($($field:ident).+) => {
        Field::Live {
            get: |config| config.$($field).+.name().to_owned(),
            set: |config, name| config.$($field).+ = Allowed::named(name),
        }
    };
}
macro_rules! text {
    ($($field:ident).+) => {
        Field::Live {
            get: |config| config.$($field).+.clone(),
            set: |config, value| config.$($field).+ = value.to_owned(),
        }
    };
}
pub(super) use {flag, number};

/// The usual maximum for a number of bytes.
pub(super) const LONG: u64 = i64::MAX as u64;
pub(super) const I32: i64 = i32::MAX as i64;

/// The highest number of a port.
pub(super) const PORT: i64 = u16::MAX as i64;
const U32: i64 = u32::MAX as i64;
const YES_NO_LOCAL: Kind = Choice(&["no", "yes", "local"]);

pub(super) const fn opt(name: &'static str, kind: Kind, change: Change, field: Field) -> Opt {
    Opt { name, alias: None, kind, change, field, hidden: false }
}

const fn was(alias: &'static str, option: Opt) -> Opt {
    Opt {
        name: option.name,
        alias: Some(alias),
        kind: option.kind,
        change: option.change,
        field: option.field,
        hidden: option.hidden,
    }
}

const fn hidden(name: &'static str, kind: Kind, field: Field) -> Opt {
    Opt { name, alias: None, kind, change: Free, field, hidden: true }
}
/// Every option of 7.0, sorted by name.
pub static OPTIONS: &[Opt] = &[
    opt(
        "acl-pubsub-default",
        Choice(&["allchannels", "resetchannels"]),
        Free,
        Field::Live {
            get: |config| {
                if config.security.acl_pubsub_default { "allchannels" } else { "resetchannels" }.to_owned()
            },
            set: |config, value| config.security.acl_pubsub_default = value == "allchannels",
        },
    ),
    opt("aclfile", Text, Never, text!(security.aclfile)),
    opt("acllog-max-len", Integer(0, i64::MAX), Free, number!(security.acllog_max_len)),
    opt("active-defrag-cycle-max", Integer(1, 99), Free, Kept("25")),
    opt("active-defrag-cycle-min", Integer(1, 99), Free, Kept("1")),
    opt("active-defrag-ignore-bytes", Memory(1, LONG), Free, Kept("104857600")),
    opt("active-defrag-max-scan-fields", Integer(1, i64::MAX), Free, Kept("1000")),
    opt("active-defrag-threshold-lower", Integer(0, 1000), Free, Kept("10")),
    opt("active-defrag-threshold-upper", Integer(0, 1000), Free, Kept("100")),
    opt("active-expire-effort", Integer(1, 10), Free, Kept("1")),
    opt("activedefrag", Checked(defragmentation), Free, Kept("no")),
    opt("activerehashing", Flag, Free, Kept("yes")),
    opt("always-show-logo", Flag, Never, Kept("no")),
    opt("aof-disable-auto-gc", Flag, Free, flag!(aof.disable_auto_gc)),
    opt("aof-load-truncated", Flag, Free, flag!(aof.load_truncated)),
    opt("aof-rewrite-incremental-fsync", Flag, Free, Kept("yes")),
    opt("aof-timestamp-enabled", Flag, Free, flag!(aof.timestamps)),
    opt("aof-use-rdb-preamble", Flag, Free, flag!(aof.use_rdb_preamble)),
    opt("aof_rewrite_cpulist", Text, Never, Kept("")),
    opt("appenddirname", Text, Never, text!(aof.appenddirname)),
    opt("appendfilename", Text, Never, text!(aof.appendfilename)),
    opt(
        "appendfsync",
        Choice(&["everysec", "always", "no"]),
        Free,
        Field::Live {
            get: |config| config.aof.appendfsync.name().to_owned(),
            set: |config, name| config.aof.appendfsync = Fsync::named(name),
        },
    ),
    opt("appendonly", Flag, Free, flag!(aof.appendonly)),
    opt("auto-aof-rewrite-min-size", Memory(0, LONG), Free, number!(aof.rewrite_min_size)),
    opt("auto-aof-rewrite-percentage", Integer(0, I32), Free, number!(aof.rewrite_percentage)),
    opt("bgsave_cpulist", Text, Never, Kept("")),
    opt("bind", Text, Free, text!(network.bind)),
    opt("bind-source-addr", Text, Free, text!(network.bind_source_addr)),
    opt("bio_cpulist", Text, Never, Kept("")),
    was(
        "lua-time-limit",
        opt("busy-reply-threshold", Integer(0, i64::MAX), Free, number!(scripts.busy_reply_threshold)),
    ),
    opt(
        "client-output-buffer-limit",
        Checked(buffer_limits),
        Free,
        Field::Live {
            get: |config| BufferLimit::print(&config.clients.output_limits),
            set: |config, text| config.clients.output_limits = BufferLimit::parse(text),
        },
    ),
    opt("client-query-buffer-limit", Memory(1 << 20, LONG), Free, number!(clients.query_buffer_limit)),
    opt("cluster-allow-pubsubshard-when-down", Flag, Free, flag!(cluster.allow_pubsubshard_when_down)),
    opt("cluster-allow-reads-when-down", Flag, Free, flag!(cluster.allow_reads_when_down)),
    opt("cluster-allow-replica-migration", Flag, Free, flag!(cluster.allow_replica_migration)),
    opt("cluster-announce-bus-port", Integer(0, PORT), Free, number!(cluster.announce_bus_port)),
    opt("cluster-announce-hostname", CheckedText(host_name), Free, text!(cluster.announce_hostname)),
    opt("cluster-announce-ip", Text, Free, text!(cluster.announce_ip)),
    opt("cluster-announce-port", Integer(0, PORT), Free, number!(cluster.announce_port)),
    opt("cluster-announce-tls-port", Integer(0, PORT), Free, Kept("0")),
    opt("cluster-config-file", Text, Never, text!(cluster.config_file)),
    opt("cluster-enabled", Flag, Never, flag!(cluster.enabled)),
    opt("cluster-link-sendbuf-limit", Memory(0, u64::MAX), Free, number!(cluster.link_send_buffer_limit)),
    opt("cluster-migration-barrier", Integer(0, I32), Free, number!(cluster.migration_barrier)),
    opt("cluster-node-timeout", Integer(0, i64::MAX), Free, number!(cluster.node_timeout_ms)),
    opt("cluster-port", Integer(0, I32), Never, number!(cluster.port)),
    opt(
        "cluster-preferred-endpoint-type",
        Choice(&["ip", "hostname", "unknown-endpoint"]),
        Free,
        text!(cluster.preferred_endpoint),
    ),
    was(
        "cluster-slave-no-failover",
        opt("cluster-replica-no-failover", Flag, Free, flag!(cluster.replica_no_failover)),
    ),
    was(
        "cluster-slave-validity-factor",
        opt(
            "cluster-replica-validity-factor",
            Integer(0, I32),
            Free,
            number!(cluster.replica_validity_factor),
        ),
    ),
    opt("cluster-require-full-coverage", Flag, Free, flag!(cluster.require_full_coverage)),
    opt("crash-log-enabled", Flag, Free, Kept("yes")),
    opt("crash-memcheck-enabled", Flag, Free, Kept("yes")),
    opt("daemonize", Flag, Never, Kept("no")),
    opt("databases", Integer(1, I32), Never, number!(keyspace.databases)),
    opt("dbfilename", Text, Protected, text!(persistence.dbfilename)),
    opt("dir", Text, Protected, text!(persistence.dir)),
    opt("disable-thp", Flag, Never, Kept("yes")),
    opt("dynamic-hz", Flag, Free, Kept("yes")),
    opt("enable-debug-command", YES_NO_LOCAL, Never, allowed!(security.enable_debug_command)),
    opt("enable-module-command", YES_NO_LOCAL, Never, allowed!(security.enable_module_command)),
    opt("enable-protected-configs", YES_NO_LOCAL, Never, allowed!(security.enable_protected_configs)),
    was(
        "hash-max-ziplist-entries",
        opt(
            "hash-max-listpack-entries",
            Integer(0, i64::MAX),
            Free,
            number!(keyspace.encodings.hash_entries_max),
        ),
    ),
    was(
        "hash-max-ziplist-value",
        opt("hash-max-listpack-value", Memory(0, LONG), Free, number!(keyspace.encodings.hash_value_max)),
    ),
    opt("hll-sparse-max-bytes", Memory(0, LONG), Free, number!(keyspace.encodings.hyperloglog_sparse_max)),
    opt(
        "hz",
        Integer(0, I32),
        Free,
        Field::Live {
            get: |config| config.server.hz.to_string(),
            set: |config, text| config.server.hz = text.parse().unwrap_or(0).clamp(1, 500),
        },
    ),
    opt("ignore-warnings", Text, Free, Kept("")),
    opt("io-threads", Integer(0, I32), Never, Kept("1")),
    opt("io-threads-do-reads", Flag, Never, Kept("no")),
    opt("jemalloc-bg-thread", Flag, Free, Kept("yes")),
    hidden("key-load-delay", Integer(-1 - I32, I32), number!(persistence.key_load_delay)),
    opt(
        "latency-monitor-threshold",
        Integer(0, i64::MAX),
        Free,
        number!(monitoring.latency_monitor_threshold),
    ),
    opt("latency-tracking", Flag, Free, flag!(monitoring.latency_tracking)),
    opt(
        "latency-tracking-info-percentiles",
        Checked(percentiles),
        Free,
        Field::Live {
            get: |config| print_percentiles(&config.monitoring.latency_percentiles),
            set: |config, value| {
                config.monitoring.latency_percentiles = value.split(' ').flat_map(str::parse).collect();
            },
        },
    ),
    opt("lazyfree-lazy-eviction", Flag, Free, flag!(memory.lazy_free.eviction)),
    opt("lazyfree-lazy-expire", Flag, Free, flag!(memory.lazy_free.expire)),
    opt("lazyfree-lazy-server-del", Flag, Free, flag!(memory.lazy_free.server_del)),
    opt("lazyfree-lazy-user-del", Flag, Free, flag!(memory.lazy_free.user_del)),
    opt("lazyfree-lazy-user-flush", Flag, Free, flag!(memory.lazy_free.user_flush)),
    opt("lfu-decay-time", Integer(0, I32), Free, number!(memory.lfu.decay_minutes)),
    opt("lfu-log-factor", Integer(0, I32), Free, number!(memory.lfu.log_factor)),
    opt("list-compress-depth", Integer(0, I32), Free, Kept("0")),
    was(
        "list-max-ziplist-size",
        opt("list-max-listpack-size", Integer(-1 - I32, I32), Free, number!(keyspace.list_node_size)),
    ),
    hidden(
        "loading-process-events-interval-bytes",
        Integer(1024, I32),
        number!(persistence.loading_process_events_interval_bytes),
    ),
    opt("logfile", Text, Never, text!(server.logfile)),
    opt(
        "loglevel",
        Choice(&["debug", "verbose", "notice", "warning"]),
        Free,
        Field::Live {
            get: |config| config.server.loglevel.name().to_owned(),
            set: |config, name| config.server.loglevel = Level::named(name),
        },
    ),
    opt("masterauth", Text, Free, text!(replication.masterauth)),
    opt("masteruser", Text, Free, text!(replication.masteruser)),
    opt("maxclients", Integer(1, U32), Free, number!(clients.maxclients)),
    opt("maxmemory", Memory(0, u64::MAX), Free, number!(memory.maxmemory)),
    opt(
        "maxmemory-clients",
        MemoryOrPercent,
        Free,
        Field::Live {
            get: |config| config.memory.maxmemory_clients.to_string(),
            set: |config, text| config.memory.maxmemory_clients = Share::parse(text),
        },
    ),
    opt("maxmemory-eviction-tenacity", Integer(0, 100), Free, Kept("10")),
    opt(
        "maxmemory-policy",
        Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "noeviction",
        ]),
        Free,
        Field::Live {
            get: |config| config.memory.maxmemory_policy.name().to_owned(),
            set: |config, name| config.memory.maxmemory_policy = Eviction::named(name),
        },
    ),
    opt("maxmemory-samples", Integer(1, I32), Free, number!(memory.maxmemory_samples)),
    was(
        "min-slaves-max-lag",
        opt("min-replicas-max-lag", Integer(0, I32), Free, number!(replication.min_replicas_max_lag)),
    ),
    was(
        "min-slaves-to-write",
        opt("min-replicas-to-write", Integer(0, I32), Free, number!(replication.min_replicas_to_write)),
    ),
    opt("no-appendfsync-on-rewrite", Flag, Free, flag!(aof.no_appendfsync_on_rewrite)),
    opt(
        "notify-keyspace-events",
        Checked(events),
        Free,
        Field::Live {
            get: |config| config.keyspace.notify_keyspace_events.to_string(),
            set: |config, text| {
                config.keyspace.notify_keyspace_events = Notify::parse(text).unwrap_or_default()
            },
        },
    ),
    opt("oom-score-adj", Choice(&["no", "yes", "relative", "absolute"]), Free, Kept("no")),
    opt("oom-score-adj-values", Checked(oom_scores), Free, Kept("0 200 800")),
    opt("pidfile", Text, Never, Kept("")),
    opt("port", Integer(0, 65535), Free, number!(network.port)),
    opt("proc-title-template", CheckedText(process_title), Free, Kept("{title} {listen-addr} {server-mode}")),
    opt(
        "propagation-error-behavior",
        Choice(&["ignore", "panic", "panic-on-replicas"]),
        Free,
        text!(replication.propagation_error_behavior),
    ),
    opt("protected-mode", Flag, Free, flag!(network.protected_mode)),
    opt("proto-max-bulk-len", Memory(1 << 20, LONG), Free, number!(clients.proto_max_bulk_len)),
    opt("rdb-del-sync-files", Flag, Free, Kept("no")),
    hidden("rdb-key-save-delay", Integer(-1 - I32, I32), number!(persistence.rdb_key_save_delay)),
    opt("rdb-save-incremental-fsync", Flag, Free, Kept("yes")),
    opt("rdbchecksum", Flag, Never, Kept("yes")),
    opt("rdbcompression", Flag, Free, flag!(persistence.rdb_compression)),
    opt("repl-backlog-size", Memory(1, LONG), Free, number!(replication.backlog_size)),
    opt("repl-backlog-ttl", Integer(0, i64::MAX), Free, number!(replication.backlog_ttl)),
    opt("repl-disable-tcp-nodelay", Flag, Free, Kept("no")),
    opt(
        "repl-diskless-load",
        Choice(&["disabled", "on-empty-db", "swapdb"]),
        Free,
        Field::Live {
            get: |config| config.replication.diskless_load.name().to_owned(),
            set: |config, name| config.replication.diskless_load = DisklessLoad::named(name),
        },
    ),
    opt("repl-diskless-sync", Flag, Free, flag!(replication.diskless_sync)),
    opt("repl-diskless-sync-delay", Integer(0, I32), Free, number!(replication.diskless_sync_delay)),
    opt(
        "repl-diskless-sync-max-replicas",
        Integer(0, I32),
        Free,
        number!(replication.diskless_sync_max_replicas),
    ),
    was(
        "repl-ping-slave-period",
        opt("repl-ping-replica-period", Integer(1, I32), Free, number!(replication.ping_period)),
    ),
    opt("repl-timeout", Integer(1, I32), Free, number!(replication.timeout)),
    was("slave-announce-ip", opt("replica-announce-ip", Text, Free, text!(replication.announce.ip))),
    was(
        "slave-announce-port",
        opt("replica-announce-port", Integer(0, PORT), Free, number!(replication.announce.port)),
    ),
    opt("replica-announced", Flag, Free, flag!(replication.announce.announced)),
    opt("replica-ignore-disk-write-errors", Flag, Free, flag!(replication.replica_ignore_disk_write_errors)),
    was("slave-ignore-maxmemory", opt("replica-ignore-maxmemory", Flag, Free, Kept("yes"))),
    was("slave-lazy-flush", opt("replica-lazy-flush", Flag, Free, Kept("no"))),
    was(
        "slave-priority",
        opt("replica-priority", Integer(0, I32), Free, number!(replication.announce.priority)),
    ),
    was("slave-read-only", opt("replica-read-only", Flag, Free, flag!(replication.replica_read_only))),
    was(
        "slave-serve-stale-data",
        opt("replica-serve-stale-data", Flag, Free, flag!(replication.replica_serve_stale_data)),
    ),
    was(
        "slaveof",
        opt(
            "replicaof",
            Checked(master),
            Never,
            Field::Live { get: Config::master_address, set: Config::set_master_address },
        ),
    ),
    opt("requirepass", Text, Free, text!(security.requirepass)),
    opt("sanitize-dump-payload", Choice(&["no", "yes", "clients"]), Free, Kept("no")),
    opt(
        "save",
        Checked(save_points),
        Free,
        Field::Live { get: Config::save_points, set: Config::set_save_points },
    ),
    opt("server_cpulist", Text, Never, Kept("")),
    opt("set-max-intset-entries", Integer(0, i64::MAX), Free, number!(keyspace.encodings.set_integers_max)),
    opt("set-proc-title", Flag, Never, Kept("yes")),
    opt("shutdown-on-sigint", Checked(shutdown_options), Free, text!(server.shutdown_on_sigint)),
    opt("shutdown-on-sigterm", Checked(shutdown_options), Free, text!(server.shutdown_on_sigterm)),
    opt("shutdown-timeout", Integer(0, I32), Free, number!(server.shutdown_timeout)),
    opt("slowlog-log-slower-than", Integer(-1, i64::MAX), Free, number!(monitoring.slowlog_slower_than)),
    opt("slowlog-max-len", Integer(0, i64::MAX), Free, number!(monitoring.slowlog_max_len)),
    opt("socket-mark-id", Integer(0, I32), Never, Kept("0")),
    opt("stop-writes-on-bgsave-error", Flag, Free, flag!(persistence.stop_writes_on_bgsave_error)),
    opt("stream-node-max-bytes", Memory(0, LONG), Free, number!(keyspace.encodings.stream_node_bytes_max)),
    opt(
        "stream-node-max-entries",
        Integer(0, i64::MAX),
        Free,
        number!(keyspace.encodings.stream_node_entries_max),
    ),
    opt("supervised", Choice(&["upstart", "systemd", "auto", "no"]), Never, Kept("no")),
    opt("syslog-enabled", Flag, Never, Kept("no")),
    opt(
        "syslog-facility",
        Choice(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]),
        Never,
        Kept("local0"),
    ),
    opt("syslog-ident", Text, Never, Kept("redis")),
    opt("tcp-backlog", Integer(0, I32), Never, number!(network.tcp_backlog)),
    opt("tcp-keepalive", Integer(0, I32), Free, Kept("300")),
    opt("timeout", Integer(0, I32), Free, number!(network.timeout)),
    opt("tls-auth-clients", Choice(&["no", "yes", "optional"]), Free, Kept("yes")),
    opt("tls-ca-cert-dir", Text, Free, Kept("")),
    opt("tls-ca-cert-file", Text, Free, Kept("")),
    opt("tls-cert-file", Text, Free, Kept("")),
    opt("tls-ciphers", Text, Free, Kept("")),
    opt("tls-ciphersuites", Text, Free, Kept("")),
    opt("tls-client-cert-file", Text, Free, Kept("")),
    opt("tls-client-key-file", Text, Free, Kept("")),
    opt("tls-client-key-file-pass", Text, Free, Kept("")),
    opt("tls-cluster", Checked(no_tls), Free, Kept("no")),
    opt("tls-dh-params-file", Text, Free, Kept("")),
    opt("tls-key-file", Text, Free, Kept("")),
    opt("tls-key-file-pass", Text, Free, Kept("")),
    opt("tls-port", Checked(no_tls_port), Free, Kept("0")),
    opt("tls-prefer-server-ciphers", Flag, Free, Kept("no")),
    opt("tls-protocols", Text, Free, Kept("")),
    opt("tls-replication", Checked(no_tls), Free, Kept("no")),
    opt("tls-session-cache-size", Integer(0, I32), Free, Kept("20480")),
    opt("tls-session-cache-timeout", Integer(0, I32), Free, Kept("300")),
    opt("tls-session-caching", Flag, Free, Kept("yes")),
    opt("tracking-table-max-keys", Integer(0, i64::MAX), Free, number!(clients.tracking_table_max_keys)),
    opt("unixsocket", Text, Never, text!(network.unixsocket)),
    opt("unixsocketperm", Integer(0, I32), Never, number!(network.unixsocketperm)),
    hidden("use-exit-on-panic", Flag, Kept("no")),
    hidden("watchdog-period", Integer(0, I32), Kept("0")),
    was(
        "zset-max-ziplist-entries",
        opt(
            "zset-max-listpack-entries",
            Integer(0, i64::MAX),
            Free,
            number!(keyspace.encodings.sorted_set_entries_max),
        ),
    ),
    was(
        "zset-max-ziplist-value",
        opt(
            "zset-max-listpack-value",
            Memory(0, LONG),
            Free,
            number!(keyspace.encodings.sorted_set_value_max),
        ),
    ),
];
