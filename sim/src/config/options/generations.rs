//! The options that differ between generations of servers: those that Redis 7.0 lacks, those that
//! only it has, other names, and other defaults.

use super::{
    Change::{Free, Never},
    Field, Kind, Opt,
    table::{I32, LONG, PORT, flag, number, opt},
};
use crate::generation::Generation::{self, Redis62, Redis82, Valkey81, Valkey91};

use Field::Kept;
use Kind::{Choice, Flag, Integer, Memory, Text};

type Generations = &'static [Generation];

/// The generations that came after 7.0.
const LATER: Generations = &[Redis82, Valkey81, Valkey91];
const VALKEY: Generations = &[Valkey81, Valkey91];
const ALL_BUT_70: Generations = &[Redis62, Redis82, Valkey81, Valkey91];

/// The options that 7.0 lacks, sorted by name, with the generations that have them.
pub static OTHERS: &[(Opt, Generations)] = &[
    (opt("active-defrag-cycle-us", Integer(0, 100_000), Free, Kept("500")), VALKEY),
    (opt("availability-zone", Text, Free, Kept("")), VALKEY),
    (opt("cluster-announce-client-ipv4", Text, Free, Kept("")), VALKEY),
    (opt("cluster-announce-client-ipv6", Text, Free, Kept("")), VALKEY),
    (opt("cluster-announce-client-port", Integer(0, PORT), Free, Kept("0")), &[Valkey91]),
    (opt("cluster-announce-client-tls-port", Integer(0, PORT), Free, Kept("0")), &[Valkey91]),
    (opt("cluster-announce-human-nodename", Text, Free, Kept("")), LATER),
    (opt("cluster-blacklist-ttl", Integer(i64::MIN, i64::MAX), Free, Kept("60")), VALKEY),
    (opt("cluster-compatibility-sample-ratio", Integer(0, 100), Free, Kept("0")), &[Redis82]),
    (opt("cluster-config-save-behavior", Choice(&["sync", "best-effort"]), Free, Kept("sync")), &[Valkey91]),
    (opt("cluster-databases", Integer(1, I32), Never, Kept("1")), &[Valkey91]),
    (
        opt(
            "cluster-manual-failover-timeout",
            Integer(1, I32),
            Free,
            number!(cluster.manual_failover_timeout_ms),
        ),
        VALKEY,
    ),
    (opt("cluster-slot-migration-log-max-len", Integer(0, i64::MAX), Free, Kept("1000")), &[Valkey91]),
    (opt("cluster-slot-stats-enabled", Flag, Free, Kept("no")), LATER),
    (
        opt(
            "commandlog-large-reply-max-len",
            Integer(0, i64::MAX),
            Free,
            number!(monitoring.large_replies.max_len),
        ),
        VALKEY,
    ),
    (
        opt(
            "commandlog-large-request-max-len",
            Integer(0, i64::MAX),
            Free,
            number!(monitoring.large_requests.max_len),
        ),
        VALKEY,
    ),
    (
        opt(
            "commandlog-reply-larger-than",
            Integer(-1, i64::MAX),
            Free,
            number!(monitoring.large_replies.least),
        ),
        VALKEY,
    ),
    (
        opt(
            "commandlog-request-larger-than",
            Integer(-1, i64::MAX),
            Free,
            number!(monitoring.large_requests.least),
        ),
        VALKEY,
    ),
    (opt("dual-channel-replication-enabled", Flag, Free, Kept("no")), VALKEY),
    (opt("extended-redis-compatibility", Flag, Free, flag!(server.extended_redis_compatibility)), VALKEY),
    (opt("gopher-enabled", Flag, Free, Kept("no")), &[Redis62]),
    (opt("hash-seed", Text, Never, Kept("")), &[Valkey91]),
    (opt("hide-user-data-from-log", Flag, Free, Kept("no")), LATER),
    (opt("import-mode", Flag, Free, Kept("no")), VALKEY),
    (opt("locale-collate", Text, Free, Kept("")), LATER),
    (opt("log-format", Choice(&["legacy", "logfmt"]), Free, Kept("legacy")), &[Valkey81]),
    (opt("log-format", Choice(&["legacy", "logfmt", "json"]), Free, Kept("legacy")), &[Valkey91]),
    (
        opt("log-timestamp-format", Choice(&["legacy", "iso8601", "milliseconds"]), Free, Kept("legacy")),
        VALKEY,
    ),
    (opt("lua-replicate-commands", Flag, Free, Kept("yes")), &[Redis62]),
    (opt("max-new-connections-per-cycle", Integer(1, 1000), Free, Kept("10")), LATER),
    (opt("max-new-tls-connections-per-cycle", Integer(1, 1000), Free, Kept("1")), LATER),
    (opt("mptcp", Flag, Never, Kept("no")), &[Valkey91]),
    (opt("prefetch-batch-max-size", Integer(0, 128), Free, Kept("16")), VALKEY),
    (opt("rdb-version-check", Choice(&["strict", "relaxed"]), Free, Kept("strict")), VALKEY),
    (opt("rdma-bind", Text, Never, Kept("")), VALKEY),
    (opt("rdma-completion-vector", Integer(-1, 1024), Never, Kept("-1")), VALKEY),
    (opt("rdma-port", Integer(0, PORT), Free, Kept("0")), VALKEY),
    (opt("rdma-rx-size", Integer(64 << 10, 16 << 20), Never, Kept("1048576")), VALKEY),
    (opt("repl-mptcp", Flag, Never, Kept("no")), &[Valkey91]),
    (opt("replica-full-sync-buffer-limit", Memory(0, LONG), Free, Kept("0")), &[Redis82]),
    (opt("set-max-listpack-entries", Integer(0, i64::MAX), Free, Kept("128")), LATER),
    (opt("set-max-listpack-value", Integer(0, i64::MAX), Free, Kept("64")), LATER),
    (opt("slot-migration-max-failover-repl-bytes", Memory(0, LONG), Free, Kept("0")), &[Valkey91]),
    (opt("tls-auth-clients-user", Choice(&["CN", "URI", "off"]), Free, Kept("off")), &[Valkey91]),
    (opt("tls-auto-reload-interval", Integer(0, I32), Free, Kept("0")), &[Valkey91]),
    (opt("unixsocketgroup", Text, Never, Kept("")), VALKEY),
    (opt("vset-force-single-threaded-execution", Flag, Free, Kept("no")), &[Redis82]),
];

/// Further names of options, with the names of 7.0.
const NAMES: &[(&str, &str, Generations)] = &[
    ("aof-rewrite-cpulist", "aof_rewrite_cpulist", LATER),
    ("bgsave-cpulist", "bgsave_cpulist", LATER),
    ("bio-cpulist", "bio_cpulist", LATER),
    ("commandlog-execution-slower-than", "slowlog-log-slower-than", VALKEY),
    ("commandlog-slow-execution-max-len", "slowlog-max-len", VALKEY),
    ("primaryauth", "masterauth", VALKEY),
    ("primaryuser", "masteruser", VALKEY),
    ("server-cpulist", "server_cpulist", LATER),
];

/// Names of 7.0 that other generations lack.
const ABSENT: &[(&[&str], Generations)] = &[
    (&["aof-disable-auto-gc"], ALL_BUT_70),
    (&["dynamic-hz"], VALKEY),
    (&["io-threads-do-reads"], LATER),
    (&["sanitize-dump-payload"], &[Valkey91]),
    (
        &[
            "aof-timestamp-enabled",
            "appenddirname",
            "bind-source-addr",
            "busy-reply-threshold",
            "cluster-allow-pubsubshard-when-down",
            "cluster-announce-hostname",
            "cluster-config-file",
            "cluster-link-sendbuf-limit",
            "cluster-port",
            "cluster-preferred-endpoint-type",
            "enable-debug-command",
            "enable-module-command",
            "enable-protected-configs",
            "hash-max-listpack-entries",
            "hash-max-listpack-value",
            "latency-tracking",
            "latency-tracking-info-percentiles",
            "list-max-listpack-size",
            "loading-process-events-interval-bytes",
            "maxmemory-clients",
            "propagation-error-behavior",
            "repl-diskless-sync-max-replicas",
            "replica-ignore-disk-write-errors",
            "shutdown-on-sigint",
            "shutdown-on-sigterm",
            "shutdown-timeout",
            "socket-mark-id",
            "zset-max-listpack-entries",
            "zset-max-listpack-value",
        ],
        &[Redis62],
    ),
];

/// Defaults that differ from those of the tables, for options without a function here.
const DEFAULTS: &[(&str, &str, Generations)] = &[
    ("hide-user-data-from-log", "yes", VALKEY),
    ("replica-lazy-flush", "yes", VALKEY),
    ("syslog-ident", "valkey", VALKEY),
];

/// Returns the default of an option without a function here, if it is not that of the tables.
pub(super) fn default(generation: Generation, name: &str) -> Option<&'static str> {
    let mut rows = DEFAULTS.iter();
    let row = rows.find(|(of, _, generations)| *of == name && generations.contains(&generation));
    row.map(|(_, value, _)| *value)
}

/// Returns true if servers of a generation know an option of 7.0 by this name.
pub(super) fn has(generation: Generation, name: &str) -> bool {
    // The server of 6.2 was built without TLS.
    let is_absent = (generation == Redis62 && name.starts_with("tls-"))
        || ABSENT.iter().any(|(names, of)| {
            of.contains(&generation) && names.iter().any(|absent| absent.eq_ignore_ascii_case(name))
        });
    !is_absent
}

/// Returns the further names of options in a generation, with their names in 7.0.
pub(super) fn names(generation: Generation) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = NAMES.iter().filter(move |(.., generations)| generations.contains(&generation));
    rows.map(|(name, of, _)| (*name, *of))
}

/// Returns the options of a generation that 7.0 lacks.
pub(super) fn others(generation: Generation) -> impl Iterator<Item = &'static Opt> {
    let rows = OTHERS.iter().filter(move |(_, generations)| generations.contains(&generation));
    rows.map(|(option, _)| option)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::OPTIONS;

    #[test]
    fn every_name_is_that_of_an_option() {
        assert!(OTHERS.is_sorted_by(|a, b| a.0.name <= b.0.name));
        let is_known = |name: &str| OPTIONS.iter().any(|option| option.name == name);
        assert!(OTHERS.iter().all(|(option, _)| !is_known(option.name)));
        assert!(NAMES.iter().all(|(name, of, _)| !is_known(name) && is_known(of)));
        assert!(ABSENT.iter().flat_map(|(names, _)| *names).all(|name| is_known(name)));
    }
}
