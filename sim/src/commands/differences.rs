//! Where a command answers otherwise than `redis-server` 7.0, and why. What is not listed here is not known to differ.

/// Commands in order of their names, each with what differs and why.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "bgrewriteaof",
        "Nothing but `rdb-key-save-delay` makes it take time. There is no child process that one could kill.",
    ),
    (
        "bgsave",
        "As BGREWRITEAOF. The snapshot stays on the node's own simulated disk, and with `lockstorm serve --data` in a file. Where \
         FLUSHALL has ended one, the next may begin at once; there it may with the next periodic work. One that goes over \
         connections is written to its end though all replicas have gone.",
    ),
    ("client|info", "File descriptors and events are made up: a node owns no sockets."),
    ("client|list", "As CLIENT INFO."),
    (
        "client|tracking",
        "What falls out of a full table (`tracking-table-max-keys`) is told behind the reply, and not with the next periodic work.",
    ),
    (
        "cluster",
        "There is no cluster mode: `cluster-enabled yes` is refused, and all of this answers as a server without it.",
    ),
    ("command", "Notes of key specifications are in words of its own."),
    ("command|docs", "Summaries, complexity and history are in words of its own."),
    ("command|info", "As COMMAND."),
    (
        "config|get",
        "`enable-debug-command` is `yes`: DEBUG is what a laboratory is for. Paths are those of no machine.",
    ),
    (
        "config|rewrite",
        "Lines that are added are in another order; `dir` is added only where data is kept in a folder.",
    ),
    (
        "config|set",
        "Options that nothing here depends on (threads, allocators, TLS) are checked, kept and answered. Values are texts: bytes \
         that are no UTF-8 are replaced. `dir` is never set, also with `enable-protected-configs`.",
    ),
    (
        "debug",
        "Subcommands about allocators and threads are absent, and RESTART with CRASH-AND-RECOVER. HTSTATS \
         knows of no chains, LISTPACK and QUICKLIST print nothing, the threshold for packed nodes changes nothing. \
         DEBUG CLOCK ADVANCE is added, which moves a manual clock.",
    ),
    (
        "dump",
        "Byte for byte a server's, but for what a value's past decides there: the order of tables, where long lists are \
         cut, and the width of sets of integers that were larger once.",
    ),
    (
        "eval",
        "A script that does not compile is quoted as UTF-8: other bytes are replaced in the error. Levels of `error` beyond a \
         `pcall` or `xpcall` are other places, and a few calls fit less into each other. SCRIPT KILL also ends what runs in \
         a coroutine. By a simulated clock time stands still in a script, but for DEBUG SLEEP, and one that takes a hundred million steps of Lua \
         is endless: it is busy until it is killed.",
    ),
    ("evalsha", "As EVAL."),
    ("exec", "By a simulated or a manual clock time stands still in a transaction, but for DEBUG SLEEP."),
    ("fcall", "As EVAL."),
    ("hrandfield", "Drawn from the node's seed."),
    (
        "info",
        "What a process has (compiler, CPU time, resident memory) is a constant. A replica is online as soon as its snapshot is on \
         its way, also one that does not read; there it is once all has been sent.",
    ),
    ("lastsave", "The node's own clock, and its own simulated disk."),
    (
        "latency",
        "By a simulated or a manual clock commands take no time, but for DEBUG SLEEP and scripts that do not end. Of the events \
         beside commands there are expire-cycle, expire-del and eviction-cycle.",
    ),
    ("latency|doctor", "The figures are the server's, the words its own."),
    ("memory|doctor", "There is no allocator to look into."),
    ("memory|malloc-stats", "There is no allocator to look into."),
    ("memory|purge", "There is no allocator to give memory back to."),
    (
        "memory|stats",
        "Reckoned by a model of 64-bit Redis, not measured. The peak is what is used now, and an allocator's \
         figures are those of one that loses nothing.",
    ),
    (
        "memory|usage",
        "Reckoned by a model of 64-bit Redis, not measured: within 4% for strings and compact encodings, 10% for streams, 25% for \
         tables; not so for lists in nodes of a few elements (`list-max-listpack-size` 0 to 2).",
    ),
    (
        "migrate",
        "A port that is none is one where nobody can be written to, also where connecting to it fails there. In a script it answers that the target cannot be reached: Lua cannot be left standing in the middle of a call.",
    ),
    ("module|load", "Always refused, also with `enable-module-command`: nothing here could run a module."),
    ("module|loadex", "Always refused, also with `enable-module-command`: nothing here could run a module."),
    ("module|unload", "Always refused, also with `enable-module-command`: there are no modules."),
    ("object|freq", "As OBJECT IDLETIME."),
    (
        "object|idletime",
        "Each key has a time of its own, where Redis has small integers once for all keys that hold them, and so one time for all.",
    ),
    ("randomkey", "Drawn from the node's seed."),
    ("restore", "Damage inside a payload is always looked for, as with `sanitize-dump-payload yes`."),
    ("restore-asking", "As RESTORE."),
    (
        "save",
        "It stays on the node's own simulated disk, and with `lockstorm serve --data` in a file. It takes no time, whatever \
         `rdb-key-save-delay` says.",
    ),
    ("scan", "Cursors and the order of keys are its own; the guarantees are the same."),
    (
        "script|debug",
        "YES, SYNC and NO are answered and kept, and EVALSHA is refused meanwhile. There is no debugger: EVAL answers an error in the \
         place of a session, and changes nothing.",
    ),
    (
        "sort",
        "Numbers are numbers, whatever went before. Redis 7.0 takes none for one after a command has overflowed a number of its \
         own, such as an ID of a stream beyond 64 bits, until something else fails.",
    ),
    ("sort_ro", "As SORT."),
    ("spop", "Drawn from the node's seed."),
    ("srandmember", "Drawn from the node's seed."),
    (
        "subscribe",
        "Who hears of a keyspace event that its own command has made (RESP3) has it before the reply or behind it, as there. What is \
         written in the midst of a reply there (ZPOPMIN, XREADGROUP) comes before it, and so does the end of a key that SINTERSTORE \
         leaves without elements.",
    ),
    ("zrandmember", "Drawn from the node's seed."),
];

/// Commands of Redis 7.0 that are not there, and why.
const ABSENT: &[(&str, &str)] = &[("sentinel", "A node is no sentinel.")];

/// What differs from Redis in a command, if anything is known to.
pub fn difference(name: &str) -> Option<&'static str> {
    DIFFERENCES.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}

/// The commands of Redis 7.0 that are not there, with the reason.
pub fn absent() -> impl Iterator<Item = (&'static str, &'static str)> {
    ABSENT.iter().copied().filter(|(name, _)| !exists(name))
}

/// Whether there is a command, or a subcommand, of this name.
fn exists(name: &str) -> bool {
    let mut specs = super::ALL.iter().copied().flatten();
    specs.any(|spec| spec.name == name || spec.subcommands.iter().any(|sub| sub.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_sorted_and_of_commands_that_exist() {
        assert!(DIFFERENCES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(ABSENT.is_sorted_by(|a, b| a.0 < b.0));
        for (name, _) in DIFFERENCES {
            assert!(exists(name), "{name}");
        }
    }
}
