//! The features in which generations differ, and the releases from which on servers have them.

use super::Generation;

/// The version of Redis from which Valkey was forked.
const FORK: (u8, u8) = (7, 2);

/// The releases from which on servers have something, each as major and minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The release of Redis; `None` if no Redis has it.
    pub redis: Option<(u8, u8)>,
    /// The release of Valkey; `None` if Valkey has it from its fork on, or not at all.
    pub valkey: Option<(u8, u8)>,
}

impl Since {
    /// From this Redis on, and in Valkey if its fork had it.
    const fn redis(major: u8, minor: u8) -> Since {
        Since { redis: Some((major, minor)), valkey: None }
    }

    /// From this Valkey on, and in no Redis.
    const fn valkey(major: u8, minor: u8) -> Since {
        Since { redis: None, valkey: Some((major, minor)) }
    }

    /// Reads the version of a command's specification: `7.0.0`, `valkey 9.0.0`, or both as
    /// `7.4.0, valkey 9.0.0`.
    pub fn parse(text: &str) -> Since {
        let mut since = Since { redis: None, valkey: None };
        for part in text.split(", ") {
            let (place, version) = match part.strip_prefix("valkey ") {
                Some(version) => (&mut since.valkey, version),
                None => (&mut since.redis, part),
            };
            let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(u8::MAX));
            *place = numbers.next().zip(numbers.next());
        }
        since
    }

    /// Returns true if servers of the generation have it.
    pub fn includes(self, generation: Generation) -> bool {
        self.includes_release(generation.is_valkey(), generation.release())
    }

    /// Returns true if this release of Valkey, or else of Redis, has it.
    pub fn includes_release(self, is_valkey: bool, release: (u8, u8)) -> bool {
        match is_valkey {
            false => self.redis.is_some_and(|since| since <= release),
            true => {
                self.redis.is_some_and(|since| since <= FORK)
                    || self.valkey.is_some_and(|since| since <= release)
            }
        }
    }
}

/// A feature besides commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// `SET key value NX GET`.
    SetNxGet,
    /// The options NX, XX, GT and LT of EXPIRE and its kin.
    ExpireConditions,
    /// Replicas get the times at which keys expire, and not how long they live.
    ReplicatedExpiryTimes,
    /// `SET key value IFEQ old`.
    SetIfEq,
    /// `min-replicas-to-write` applies to writes of scripts.
    ScriptsNeedReplicas,
    /// The class `n` of keyspace events.
    NewKeyEvents,
    /// Errors inside scripts are tables.
    ErrorTables,
    /// A single write of a script or a transaction is propagated without MULTI and EXEC.
    BareSingleWrites,
    /// WATCH remembers which keys had expired.
    ExpiredWatches,
    /// SETBIT and BITFIELD that change no bit are no change.
    IdleBits,
    /// CLIENT REPLY does not suppress pushes.
    PushesWithoutReplies,
    /// ACL rules have selectors, and permissions to read or to write keys.
    Selectors,
    /// Subcommands are commands.
    Subcommands,
    /// A replica that is cut off answers ECHO and SCRIPT, and not PING.
    StaleScripts,
    /// RESET needs no permission.
    FreeReset,
    /// LPOP and RPOP with a count look at the key first.
    CountedPops,
    /// The flush of an empty database is propagated.
    EmptyFlushes,
    /// The options NOW, FORCE and ABORT of SHUTDOWN.
    ShutdownOptions,
    /// The clock stands still while a script runs.
    FrozenScripts,
    /// WAIT is allowed in scripts.
    WaitInScripts,
    /// Commands that block are allowed in scripts, where they do not block.
    BlockingInScripts,
    /// Scripts have `os.clock`.
    ScriptClock,
    /// Scores and the numbers of scripts have as few digits as identify them.
    ShortDoubles,
    /// The id `+` in XREAD.
    LastEntry,
    /// MULTI or WATCH in a transaction aborts it.
    StrictTransactions,
    /// Scripts of EVAL beyond 500 are evicted.
    ScriptEviction,
    /// A script that EVAL loaded, then SCRIPT LOAD, is not evicted.
    LoadedScriptsStay,
    /// The global `server` of scripts.
    ServerGlobal,
    /// WAITAOF, with the offsets that it needs.
    SyncedOffsets,
    /// A script knows the writes of its caller when it calls WAIT or WAITAOF.
    CallerWrites,
    /// WAITAOF takes bytes that are only written for synced.
    EarlySynced,
    /// The deletion of keys whose slot another node has taken is propagated.
    PropagatedSlotLoss,
    /// CLUSTER SETSLOT is replicated, and takes TIMEOUT.
    ReplicatedSetSlot,
    /// Nodes of a cluster have shard ids, and send extensions only to nodes that read them.
    ShardIds,
    /// Nodes of a cluster send each other light messages.
    LightMessages,
    /// Nodes of a cluster send each other secrets.
    BusSecret,
    /// Errors of permissions name the user.
    NamedDenials,
    /// `HSCAN NOVALUES`.
    ScanWithoutValues,
    /// Coordinates have as few digits as identify them.
    ShortCoordinates,
    /// Short lists and small sets of strings are listpacks.
    PackedLists,
    /// Streams and groups count the entries that were added and read.
    StreamCounters,
    /// Consumers of streams have the time of their last success, and are seen whenever they ask.
    ConsumerActivity,
    /// `SENTINEL FAILOVER name COORDINATED`.
    CoordinatedFailover,
    /// A replica redirects clients with CLIENT CAPA to its master.
    Redirect,
    /// A master that becomes a replica redirects blocked clients, too.
    RedirectBlocked,
    /// The filter MAXAGE.
    ClientAge,
    /// The filter ID with several ids.
    ClientIds,
    /// CLIENT LIST has filters.
    ClientListFilters,
    /// Logs of commands with large requests and replies.
    CommandLog,
    /// Counts of clients and keys in INFO.
    ClientCounts,
    /// The addresses in INFO.
    Listeners,
    /// Lua is a module.
    LuaModule,
    /// The newer filters of CLIENT KILL and CLIENT LIST, and negated ones.
    ClientFilters,
    /// A message that a client's command sends to the client itself comes after the reply.
    PushesLast,
    /// The keys that a script's commands read are tracked, and not those that it declares.
    ScriptReads,
    /// SORT in a cluster takes patterns whose keys are all in the slot of the key.
    PatternSlots,
    /// A full memory refuses only commands that need memory, also in a transaction.
    QueueBeyondMemory,
    /// CLIENT REPLY is refused in a transaction.
    NoReplyModesInMulti,
    /// A command is refused before it is looked up if its client has not authenticated.
    EarlyAuth,
    /// A cluster can have several databases.
    ClusterDatabases,
}

/// Every feature, with the release from which on servers have it and its description for the
/// table of differences.
pub const FEATURES: &[(Feature, Since, &str)] = &[
    (Feature::SetNxGet, Since::redis(7, 0), "`SET NX GET` is allowed"),
    (Feature::ExpireConditions, Since::redis(7, 0), "EXPIRE and its kin have NX, XX, GT and LT"),
    (
        Feature::ReplicatedExpiryTimes,
        Since::redis(7, 0),
        "replicas get the times at which keys expire (before, the time to live: on a replica that is late, or \
         whose clock is off, a lease ends otherwise)",
    ),
    (
        Feature::ScriptsNeedReplicas,
        Since::redis(7, 0),
        "a script cannot write with fewer replicas than `min-replicas-to-write` either (before, only the \
         writes of clients were refused)",
    ),
    (
        Feature::NewKeyEvents,
        Since::redis(7, 0),
        "`notify-keyspace-events` has the class `n`: events of new keys",
    ),
    (
        Feature::ErrorTables,
        Since::redis(7, 0),
        "an error that a script catches begins with a code, also if it may not run the command (before, such \
         texts began with the place in the script, as in `@user_script: 1: `), and `redis.error_reply` adds one",
    ),
    (
        Feature::BareSingleWrites,
        Since::redis(7, 0),
        "the only write of a script or of a transaction is replicated without MULTI and EXEC",
    ),
    (
        Feature::ExpiredWatches,
        Since::redis(7, 0),
        "WATCH of a key that has expired but is not yet deleted: EXEC runs, also after the deletion (before, it \
         was aborted)",
    ),
    (
        Feature::IdleBits,
        Since::redis(7, 0),
        "SETBIT and BITFIELD that change no bit are no change for WATCH, events and replicas",
    ),
    (
        Feature::PushesWithoutReplies,
        Since::redis(7, 0),
        "`CLIENT REPLY OFF` and `SKIP` do not suppress messages and invalidations",
    ),
    (
        Feature::Selectors,
        Since::redis(7, 0),
        "ACL rules have selectors in parentheses, `%R~` and `%W~`, and take subcommands away",
    ),
    (
        Feature::Subcommands,
        Since::redis(7, 0),
        "a subcommand that does not exist, or has another number of arguments, is refused when it is queued (before, \
         when it runs, so the rest of the transaction ran); a script's call has the error of the subcommand",
    ),
    (
        Feature::StaleScripts,
        Since::redis(7, 0),
        "a replica that is cut off and must not serve stale data answers ECHO and SCRIPT, but PING with MASTERDOWN",
    ),
    (Feature::FreeReset, Since::redis(7, 0), "RESET needs no permission and no AUTH"),
    (
        Feature::CountedPops,
        Since::redis(7, 0),
        "`LPOP key 0` and `RPOP key 0` reply with an empty array, and with a null array for a missing key",
    ),
    (Feature::EmptyFlushes, Since::redis(7, 0), "FLUSHDB of an empty database is propagated"),
    (Feature::ShutdownOptions, Since::redis(7, 0), "SHUTDOWN has NOW, FORCE and ABORT"),
    (
        Feature::FrozenScripts,
        Since::redis(7, 2),
        "time stands still in a script: a key whose lease is shorter than the rest of the script is gone \
         when the reply arrives (TIME moves once the script is busy, leases do not)",
    ),
    (
        Feature::WaitInScripts,
        Since::redis(7, 2),
        "WAIT is allowed in scripts; it does not block, and counts the replicas that have the connection's \
         previous write, or all replicas that are online",
    ),
    (
        Feature::BlockingInScripts,
        Since::redis(7, 2),
        "BLPOP and its kin, and XREAD with BLOCK, are allowed in scripts; they reply at once, with null if nothing \
         is there",
    ),
    (Feature::ScriptClock, Since::redis(7, 2), "scripts have `os.clock`, and nothing else of `os`"),
    (
        Feature::ShortDoubles,
        Since::redis(7, 2),
        "scores, and numbers that scripts pass to commands, have as few digits as identify them, and whole \
         numbers up to 2^62 no exponent",
    ),
    (
        Feature::LastEntry,
        Since { redis: Some((7, 4)), valkey: Some((8, 0)) },
        "`XREAD STREAMS key +` replies with the last entry",
    ),
    (
        Feature::StrictTransactions,
        Since::valkey(8, 0),
        "MULTI or WATCH in a transaction aborts it; in Redis they are refused, and the transaction goes on",
    ),
    (
        Feature::ScriptEviction,
        Since { redis: Some((7, 4)), valkey: Some((8, 0)) },
        "of scripts that EVAL loaded, those beyond 500 are evicted",
    ),
    (Feature::SetIfEq, Since::valkey(8, 1), "`SET IFEQ` compares the old value"),
    (Feature::LoadedScriptsStay, Since::valkey(8, 0), "SCRIPT LOAD keeps a script that EVAL loaded before"),
    (Feature::ServerGlobal, Since::valkey(8, 0), "scripts have the global `server` besides `redis`"),
    (
        Feature::SyncedOffsets,
        Since::redis(7, 2),
        "a replica with an append-only file acknowledges the offset that is synced, too; a master without \
         replicas counts each appended command as one byte of the stream, and each request for \
         acknowledgements",
    ),
    (
        Feature::CallerWrites,
        Since::valkey(8, 0),
        "WAIT and WAITAOF in a script count the copies of its caller's previous write",
    ),
    (
        Feature::EarlySynced,
        Since::valkey(8, 0),
        "WAITAOF with `appendfsync everysec` counts a write as synced once a turn of the event loop has \
         written nothing, up to a second before it is synced",
    ),
    (
        Feature::PropagatedSlotLoss,
        Since { redis: Some((8, 2)), valkey: Some((8, 1)) },
        "a node of a cluster deletes the keys of a slot that another node has taken on its replicas and in its \
         append-only file, too",
    ),
    (
        Feature::ReplicatedSetSlot,
        Since::valkey(8, 0),
        "`CLUSTER SETSLOT` is replicated: a promoted replica knows the slots that are moving, and the other side \
         of the move takes it for its former master; SETSLOT takes TIMEOUT, and ignores other words at its end",
    ),
    (
        Feature::ShardIds,
        Since::redis(7, 2),
        "nodes of a cluster have shard ids, in `nodes.conf` and on the bus; they send extensions only to \
         nodes that read them, and forget a node that another one was told to forget",
    ),
    (
        Feature::LightMessages,
        Since::valkey(8, 0),
        "nodes of a cluster send messages of channels without the header, to nodes that take them",
    ),
    (
        Feature::BusSecret,
        Since::redis(8, 2),
        "nodes of a cluster send each other secrets; a node of Valkey takes that of a node of Redis for its \
         address for clients, and names it in CLUSTER NODES, CLUSTER SLOTS and MOVED",
    ),
    (
        Feature::NamedDenials,
        Since::redis(7, 2),
        "NOPERM and ACL DRYRUN name the user that may not run a command, and a script's error has the same \
         reason",
    ),
    (
        Feature::ScanWithoutValues,
        Since { redis: Some((7, 4)), valkey: Some((8, 0)) },
        "`HSCAN NOVALUES` returns fields alone",
    ),
    (
        Feature::ShortCoordinates,
        Since::redis(8, 2),
        "GEOPOS and its kin reply with as few digits as identify a coordinate",
    ),
    (
        Feature::PackedLists,
        Since::redis(7, 2),
        "OBJECT ENCODING names a list that fits into one node, and a small set of strings, `listpack`; the \
         real servers do not turn every larger one back that has become small",
    ),
    (
        Feature::StreamCounters,
        Since::redis(7, 0),
        "XINFO has `entries-added`, `max-deleted-entry-id`, `recorded-first-entry-id`, `entries-read` and \
         `lag`, and XAUTOCLAIM replies with deleted entries",
    ),
    (
        Feature::ConsumerActivity,
        Since::redis(7, 2),
        "a consumer that reads or claims in vain is created and seen, too; XINFO has the time since it last \
         got an entry, `inactive`, and `active-time`",
    ),
    (
        Feature::CoordinatedFailover,
        Since::valkey(9, 0),
        "`SENTINEL FAILOVER COORDINATED` has the master hand its role over, once a majority of the Sentinels \
         has voted; without COORDINATED, too, the master is SDOWN up to the next tick",
    ),
    (
        Feature::Redirect,
        Since::valkey(8, 0),
        "after `CLIENT CAPA redirect` a replica answers reads and writes with `-REDIRECT host:port` of its \
         master; READONLY, which works outside a cluster, too, lets the client read",
    ),
    (
        Feature::RedirectBlocked,
        Since::valkey(9, 0),
        "clients with `CLIENT CAPA redirect` that wait for keys get `-REDIRECT` when their master becomes a \
         replica, and keep their connection",
    ),
    (
        Feature::ClientAge,
        Since { redis: Some((7, 4)), valkey: Some((8, 0)) },
        "`CLIENT KILL MAXAGE` closes connections of that age in seconds",
    ),
    (
        Feature::CommandLog,
        Since::valkey(8, 1),
        "COMMANDLOG keeps commands with large requests and replies, too; the options of SLOWLOG have the names \
         `commandlog-*` besides their own",
    ),
    (
        Feature::ClientCounts,
        Since { redis: Some((7, 4)), valkey: Some((8, 0)) },
        "INFO counts subscribers, watching clients, and watched and awaited keys",
    ),
    (Feature::Listeners, Since::redis(7, 2), "INFO has the addresses on which the server listens"),
    (
        Feature::LuaModule,
        Since::valkey(9, 1),
        "HELLO, MODULE LIST and INFO name the module `lua`, which runs the scripts",
    ),
    (Feature::ClientIds, Since::valkey(8, 1), "`CLIENT KILL ID` takes several ids"),
    (Feature::ClientListFilters, Since::valkey(8, 1), "CLIENT LIST takes the filters of CLIENT KILL"),
    (
        Feature::ClientFilters,
        Since::valkey(9, 0),
        "CLIENT KILL and CLIENT LIST filter by NAME, IDLE, FLAGS, DB, LIB-NAME, LIB-VER, CAPA and IP, and \
         `NOT-` before a filter inverts it",
    ),
    (
        Feature::PushesLast,
        Since::redis(7, 2),
        "a RESP3 client that is subscribed to what its own command publishes, or to the events of its keys, gets \
         the messages after the reply, and after that of EXEC",
    ),
    (
        Feature::ScriptReads,
        Since::redis(7, 2),
        "client tracking remembers the keys that a script reads, and not those that it declares",
    ),
    (
        Feature::PatternSlots,
        Since { redis: Some((7, 4)), valkey: Some((8, 0)) },
        "SORT in a cluster takes BY and GET with patterns whose keys are all in the slot of the key",
    ),
    (
        Feature::QueueBeyondMemory,
        Since::redis(7, 2),
        "beyond `maxmemory`, a command in a transaction is refused only if it may need memory itself (before, \
         every command that would be queued)",
    ),
    (Feature::NoReplyModesInMulti, Since::valkey(9, 0), "CLIENT REPLY is not allowed in a transaction"),
    (
        Feature::EarlyAuth,
        Since::valkey(9, 0),
        "a client that has not authenticated gets NOAUTH whatever it sends, also for commands that do not exist",
    ),
    (
        Feature::ClusterDatabases,
        Since::valkey(9, 0),
        "SELECT on a node of a cluster refuses other databases than 0 as out of range (`cluster-databases` is 1 here)",
    ),
];

impl Feature {
    /// Returns the releases from which on servers have the feature.
    pub fn since(self) -> Since {
        let row = FEATURES.iter().find(|(feature, ..)| *feature == self);
        row.expect("every feature has a row").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valkey has what Redis 7.2 had, and nothing that came to Redis later unless it says so.
    #[test]
    fn a_generation_has_what_its_release_and_its_fork_have() {
        let which = |since: &str| {
            let since = Since::parse(since);
            Generation::ALL
                .into_iter()
                .filter(|one| since.includes(*one))
                .map(Generation::name)
                .collect::<Vec<_>>()
        };
        assert_eq!(which("2.6.0").len(), 5);
        assert_eq!(which("7.0.0"), ["redis-7.0", "redis-8.2", "valkey-8.1", "valkey-9.1"]);
        assert_eq!(which("7.2.0"), ["redis-8.2", "valkey-8.1", "valkey-9.1"]);
        assert_eq!(which("7.4.0"), ["redis-8.2"]);
        assert_eq!(which("7.4.0, valkey 9.0.0"), ["redis-8.2", "valkey-9.1"]);
        assert_eq!(which("valkey 8.0.0"), ["valkey-8.1", "valkey-9.1"]);
        assert_eq!(which("8.4.0"), [""; 0]);
    }

    #[test]
    fn every_feature_has_one_row() {
        for (feature, since, _) in FEATURES {
            assert_eq!(feature.since(), *since);
            assert_eq!(FEATURES.iter().filter(|(other, ..)| other == feature).count(), 1, "{feature:?}");
        }
    }
}
