//! Known differences of commands from `redis-server`, with the reasons: those of all generations,
//! measured against 7.0.15, and those of single generations.

use crate::generation::Generation;

/// The further differences from servers of another generation than Redis 7.0, oldest generation
/// first: in sentences, and the commands that are missing.
const OF_GENERATIONS: &[(Generation, &str, &[&str])] = &[
    (
        Generation::Redis62,
        "Figures of INFO, and MEMORY USAGE of streams, are those of 7.0. Options of 7.0 can be set at the start. \
         `tot-mem` in CLIENT LIST omits the arguments of the last command. HINCRBYFLOAT by infinity leaves no \
         empty hash behind. A timeout of 0.001 seconds is a millisecond, not none. Messages and invalidations \
         that a client sends to itself come in the order of 7.0. Replicas get the time to live also where a \
         command names the time of expiry (EXPIREAT, EXAT), and no empty transaction of a script that changed \
         nothing. The event `keymiss` also tells of keys that COPY, PFMERGE, SUNIONSTORE and their kin miss. Scripts \
         cannot change the libraries of Lua, and an error that leaves `coroutine.wrap` has its place once. GEO \
         commands take units in capitals, and XCLAIM and XAUTOCLAIM drop entries that are deleted.",
        &["STRALGO"],
    ),
    (
        Generation::Redis82,
        "A writable replica does not remove expired fields of hashes by itself. INFO has no fields about \
         threads, event loops, prefetching, disconnections by limits and denials of the ACL; the memory in \
         it is that of 7.0. Options that came after 7.0 are checked, kept and answered, and have no \
         function. `entries-read` and `lag` of XINFO GROUPS follow the rules of 7.0 after deletions, and \
         for a group before the first entry. LSET refuses an index beyond 32 bits, of which servers use the \
         lower ones. There are no modules, such as that of vector sets, which HELLO would name. FLUSHALL and \
         FLUSHDB reply before the invalidation of all keys. A command that has waited is counted and logged \
         once, when it was sent. A replica gets SELECT before MULTI. RESTORE and SCAN with TYPE do not delete \
         expired keys.",
        &["CLUSTER SLOT-STATS", "XACKDEL", "XDELEX"],
    ),
    (
        Generation::Valkey81,
        "INFO, `entries-read`, `lag`, LSET, waits and SELECT as Redis 8.2. LTRIM that removes nothing is a \
         change for WATCH and client tracking. `XREAD STREAMS key +` looks at the last entry \
         only. MEMORY USAGE omits the up to 16 bytes that the C library gives beyond a size. `tot-mem` in \
         CLIENT LIST counts subscriptions as 7.0 does. COMMANDLOG counts an inline command as if it were an \
         array, and omits commands that have waited in vain. Of the options that came after 7.0, only those \
         of COMMANDLOG, `availability-zone` and `extended-redis-compatibility` have a function. CLUSTER SETSLOT does not wait for its replicas, \
         and never answers NOREPLICAS. A claim of another shard does not end a move by SETSLOT, and a target \
         whose source stops to claim the slot does not take it by itself.",
        &["CLUSTER SLOT-STATS"],
    ),
    (
        Generation::Valkey91,
        "As Valkey 8.1. A large value counts for the limit of the output buffer. `tot-mem` in CLIENT LIST also omits the state that transactions, WATCH, tracking \
         and subscriptions leave behind. A writable replica does not remove expired fields of hashes by \
         itself. The copy of a slot migration takes no time, and its link to the \
         target is no client. A snapshot does not say that a slot is being imported: a replica that \
         synchronizes fully in the middle of an import takes its keys for its master's own.",
        &["CLUSTER SLOT-STATS", "CLUSTERSCAN"],
    ),
];

/// Returns the further known differences from servers of another generation than Redis 7.0, and
/// the commands that are missing.
pub(super) fn of_generations() -> impl Iterator<Item = (Generation, &'static str, &'static [&'static str])> {
    OF_GENERATIONS.iter().copied()
}

/// The differences from 7.0.15, which are those from every generation, sorted by command.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "bgrewriteaof",
        "It takes no time, except with `rdb-key-save-delay`. There is no child process that could be \
         killed.",
    ),
    (
        "bgsave",
        "As BGREWRITEAOF. The snapshot stays on the node's simulated disk, or with `lockstorm serve --data` \
         in a file. After FLUSHALL has aborted one, the next may begin at once; in Redis it begins with the \
         next cron. A diskless one is written to its end even when all replicas have gone.",
    ),
    ("client|info", "File descriptors and events are invented: a node owns no sockets."),
    ("client|list", "As CLIENT INFO."),
    (
        "client|tracking",
        "Invalidations of keys that are evicted from the full tracking table (`tracking-table-max-keys`) \
         are sent after the reply, not by the next cron.",
    ),
    (
        "cluster|slots",
        "The order of replicas, as that of nodes in CLUSTER NODES and CLUSTER SHARDS, is that in which the node \
         has learned of them.",
    ),
    ("command", "The notes of key specifications have different texts."),
    ("command|docs", "Summaries, complexity and history have different texts."),
    ("command|info", "As COMMAND."),
    (
        "config|get",
        "`enable-debug-command` is `yes`, since DEBUG is useful in a laboratory (`--option \
         enable-debug-command=no` refuses it as servers do). Paths are invented.",
    ),
    (
        "config|rewrite",
        "Added lines are in another order; `dir` is added only where data is kept in a folder.",
    ),
    (
        "config|set",
        "Options without a function here (threads, allocators, TLS) are checked, kept and answered. Values \
         are strings: bytes that are not UTF-8 are replaced. `dir` cannot be set, even with `enable- \
         protected-configs`.",
    ),
    (
        "debug",
        "Subcommands about allocators and threads are absent, as are RESTART and CRASH-AND-RECOVER. HTSTATS \
         reports no chains, LISTPACK and QUICKLIST print nothing, the threshold for packed nodes has no \
         effect. DEBUG CLOCK ADVANCE is added, which advances a manual clock.",
    ),
    (
        "dump",
        "Identical byte for byte, except where the history of a value decides in Redis: the order of hash \
         tables, the node boundaries of long lists, and the width of integer sets that once had larger \
         members.",
    ),
    (
        "eval",
        "A script that does not compile is quoted as UTF-8: other bytes are replaced in the error. Levels \
         of `error` beyond a `pcall` or `xpcall` name other positions, and the maximum depth of nested \
         calls is a little lower. SCRIPT KILL also ends code in a coroutine. With a simulated clock time \
         stands still in a script, except for DEBUG SLEEP, and a script of more than a hundred million Lua \
         instructions counts as endless: it is busy until it is killed.",
    ),
    ("evalsha", "As EVAL."),
    (
        "exec",
        "With a simulated or a manual clock time stands still in a transaction, except for DEBUG SLEEP.",
    ),
    ("fcall", "As EVAL."),
    ("hrandfield", "Drawn from the node's seed."),
    (
        "info",
        "Fields about the process (compiler, CPU time, resident memory) are constants. A replica is online \
         as soon as the transfer of its snapshot begins, even if it does not read; in Redis it is once the \
         transfer is complete.",
    ),
    ("lastsave", "By the node's clock, of its simulated disk."),
    (
        "latency",
        "With a simulated or a manual clock commands take no time, except DEBUG SLEEP and endless scripts. \
         Besides commands, only the events expire-cycle, expire-del and eviction-cycle exist.",
    ),
    ("latency|doctor", "The figures are the same, the text differs."),
    ("memory|doctor", "There is no allocator to look into."),
    ("memory|malloc-stats", "There is no allocator to look into."),
    ("memory|purge", "There is no allocator to give memory back to."),
    (
        "memory|stats",
        "Computed from a model of 64-bit Redis, not measured. The peak is the present use, and the \
         allocator's figures are those of one without fragmentation.",
    ),
    (
        "memory|usage",
        "Computed from a model of 64-bit Redis, not measured: within 4% for strings and compact encodings, \
         10% for streams, 25% for tables; less exact for lists in nodes of a few elements (`list-max- \
         listpack-size` 0 to 2).",
    ),
    (
        "migrate",
        "An invalid port counts as a target that cannot be written to; in Redis connecting may fail there. \
         In a script it answers that the target cannot be reached: Lua cannot be suspended in the middle of \
         a call.",
    ),
    ("module|load", "Always refused, even with `enable-module-command`: modules cannot run here."),
    ("module|loadex", "Always refused, even with `enable-module-command`: modules cannot run here."),
    ("module|unload", "Always refused, even with `enable-module-command`: there are no modules."),
    ("object|freq", "As OBJECT IDLETIME."),
    (
        "object|idletime",
        "Each key has its own idle time; in Redis all keys with the same small integer share one value, and \
         so one time.",
    ),
    ("randomkey", "Drawn from the node's seed."),
    ("restore", "Payloads are always checked for damage, as with `sanitize-dump-payload yes`."),
    ("restore-asking", "As RESTORE."),
    (
        "save",
        "The snapshot stays on the node's simulated disk, or with `lockstorm serve --data` in a file. It \
         takes no time, even with `rdb-key-save-delay`.",
    ),
    ("scan", "Cursors and the order of keys differ; the guarantees are the same."),
    (
        "script|debug",
        "YES, SYNC and NO are answered and kept, and EVALSHA is refused meanwhile. There is no debugger: \
         EVAL answers an error instead of starting a session, and changes nothing.",
    ),
    (
        "sort",
        "Numbers are always recognized. Redis 7.0 rejects them after a command has overflowed a number, \
         such as a stream ID beyond 64 bits, until another error occurs.",
    ),
    ("sort_ro", "As SORT."),
    ("spop", "Drawn from the node's seed."),
    ("srandmember", "Drawn from the node's seed."),
    (
        "subscribe",
        "A client that receives a keyspace notification of its own command (RESP3) gets it before or after \
         the reply, as in Redis. Notifications that Redis writes in the middle of a reply (ZPOPMIN, \
         XREADGROUP) come before it, and so does that of a key that SINTERSTORE leaves without elements.",
    ),
    (
        "waitaof",
        "Once a second (`appendfsync everysec`) means as in Redis 7.0: in each new second of the clock, not a \
         second after the last sync. With `lockstorm serve --data` a sync in the background counts from its \
         beginning.",
    ),
    ("zrandmember", "Drawn from the node's seed."),
];

/// Commands of Redis 7.0 that are absent in every generation, with the reasons.
const ABSENT: &[(&str, &str)] = &[("sentinel", "A node is no sentinel.")];

/// Returns the known difference of a command from Redis.
pub fn difference(name: &str) -> Option<&'static str> {
    DIFFERENCES.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}

/// Returns the commands of Redis 7.0 that are absent, with the reasons.
pub fn absent() -> impl Iterator<Item = (&'static str, &'static str)> {
    ABSENT.iter().copied().filter(|(name, _)| !exists(name))
}

/// Returns true if a command or subcommand of this name exists.
fn exists(name: &str) -> bool {
    let mut specs = super::ALL.iter().copied().flatten();
    specs.any(|spec| spec.name == name || spec.subcommands.iter().any(|sub| sub.name == name))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::commands::find;

    #[test]
    fn differences_are_sorted_and_of_commands_that_exist() {
        assert!(DIFFERENCES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(ABSENT.is_sorted_by(|a, b| a.0 < b.0));
        for (name, _) in DIFFERENCES {
            assert!(exists(name), "{name}");
        }
    }

    #[test]
    fn no_command_is_missing_that_a_generation_has() {
        for (generation, _, missing) in of_generations() {
            for command in missing {
                let words: Vec<Bytes> = command.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
                assert!(find(generation, &words).is_err(), "{} has {command}", generation.name());
            }
        }
    }
}
