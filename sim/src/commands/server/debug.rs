//! DEBUG subcommand ...: functions for tests.

use std::{fmt::Write as _, time::Duration};

use bytes::Bytes;

use super::{
    config_rewrite::rewrite,
    debug_digest::Digest,
    debug_protocol::sample,
    debug_reload::{load_log, reload},
    debug_structure::{structure, table_of, tables},
};
use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        generic::{references, shares},
        integer, printable,
    },
    config::{Config, options::memory},
    durability::rdb,
    effect::{Class, PropagateTo, Propagated},
    event::Action,
    keyspace::{Entry, Str, Value, embedded_memory, text_memory},
    log::Level,
    node::clients::{BlockedOn, ReplyBufferRules, Role},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "debug",
    group: Group::Server,
    since: "1.0.0",
    summary: "Commands for tests.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::DEBUGS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// The subcommands with their descriptions.
const HELP: &[(&str, &str)] = &[
    ("AOF-FLUSH-SLEEP <microseconds>", "Accepted; the append-only file is written as fast as ever."),
    ("ASSERT", "Ends the process at once."),
    ("CHANGE-REPL-ID", "Changes the replication id, so that no replica can resynchronize partially."),
    ("CLIENT-EVICTION", "How many clients use about how much memory."),
    ("CLOCK ADVANCE <milliseconds>", "Advances a manual clock, and answers when all that fell due is done."),
    ("CLUSTERLINK KILL <to|from|all> <node-id>", "Ends the connections of the cluster bus with a node."),
    ("CONFIG-REWRITE-FORCE-ALL", "CONFIG REWRITE with every option."),
    ("DIGEST", "A hash of all the data."),
    ("DIGEST-VALUE <key> [<key> ...]", "A hash of each value."),
    (
        "DROP-CLUSTER-PACKET-FILTER <type>",
        "Passes over messages of the cluster bus with this number, of none with -1.",
    ),
    ("ERROR <text>", "Answers an error."),
    ("HTSTATS <db>", "How many entries the tables of a database have."),
    ("HTSTATS-KEY <key>", "How many entries the table under a key has."),
    ("LEAK <text>", "Accepted without effect."),
    ("LISTPACK <key>", "Whether a value is a listpack."),
    ("LOADAOF", "Reads the data from the append-only file again."),
    ("LOG <text>", "Writes a line into the log."),
    ("OBJECT <key>", "The encoding of a value."),
    ("OOM", "Ends the process at once."),
    ("PANIC", "Ends the process at once."),
    ("PAUSE-CRON <0|1>", "Stops the cron, or continues it."),
    ("POPULATE <count> [<prefix>] [<size>]", "Creates keys with strings."),
    ("PROTOCOL <type>", "Answers a value of a type of the protocol."),
    ("QUICKLIST <key> [<0|1>]", "Whether a list is a quicklist."),
    ("QUICKLIST-PACKED-THRESHOLD <size>", "Accepted without effect."),
    ("RELOAD [NOSAVE] [NOFLUSH] [MERGE]", "Writes a snapshot and reads it again."),
    ("REPLICATE <command> [<argument> ...]", "Sends replicas a command that is not run here."),
    (
        "REPLYBUFFER PEAK-RESET-TIME <milliseconds|NEVER|RESET>",
        "How long the peak size of a reply buffer is kept.",
    ),
    ("REPLYBUFFER RESIZING <0|1>", "Whether reply buffers are resized."),
    ("SDSLEN <key>", "The length and the size of a key and its string."),
    ("SEGFAULT", "Ends the process at once."),
    ("SET-ACTIVE-EXPIRE <0|1>", "Whether active expiry runs."),
    ("SET-DISABLE-DENY-SCRIPTS <0|1>", "Whether scripts may call DEBUG."),
    (
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "Whether payloads and snapshots with a wrong checksum are accepted.",
    ),
    ("SLEEP <seconds>", "Blocks the server for so long."),
    ("STRUCTSIZE", "The sizes that MEMORY USAGE is computed from."),
    ("HELP", "These lines."),
];

/// Returns true if `args` are the words of DEBUG CLOCK.
pub(crate) fn is_clock(args: &[Bytes]) -> bool {
    args.len() > 1 && args[0].eq_ignore_ascii_case(b"debug") && args[1].eq_ignore_ascii_case(b"clock")
}

/// DEBUG CLOCK ADVANCE milliseconds: advances a manual clock. The reply follows once the clock has
/// advanced and all due work is done.
fn advance(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if !ctx.env.manual_clock {
        return Err(Error::of("ERR the clock of this server moves by itself"));
    }
    if !ctx.may_block() {
        return Err(Error::of("ERR DEBUG CLOCK ADVANCE isn't allowed for DENY BLOCKING client"));
    }
    let by = u64::try_from(integer(&args[3])?).map_err(|_| Error::OUT_OF_RANGE)?;
    let by = Duration::from_millis(by);
    ctx.env.outbox.push(Action::Advance { by });
    let deadline = Some(ctx.env.monotonic + by);
    ctx.block(args, Vec::new(), deadline, BlockedOn::Clock);
    Ok(Reply::Silence)
}

/// DEBUG POPULATE count [prefix] [size]: creates keys with strings, except those that exist.
fn populate(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    const KEYS_MAX: i64 = 10_000_000;
    let positive = |text: &Bytes| match integer(text) {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(Error::NOT_POSITIVE),
    };
    let count = positive(&args[2])?;
    let size = args.get(4).map(positive).transpose()?.unwrap_or(0);
    // Limit the size: a laboratory has the memory of one machine.
    if count > KEYS_MAX || count.saturating_mul(size.max(1)) > 1 << 32 {
        return Err(Error::OUT_OF_RANGE);
    }
    let prefix = args.get(3).map_or(&b"key"[..], |prefix| prefix);
    for number in 0..count {
        let key = Bytes::from([prefix, format!(":{number}").as_bytes()].concat());
        if ctx.raw_db().get(&key).is_some() {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(usize::try_from(size).unwrap_or(0), 0);
        }
        ctx.put(&key, Value::String(Str::new(Bytes::from(value))), None);
        ctx.changed(&key, Class::String, "set");
    }
    // Do not propagate it: a replica would not have the command.
    ctx.propagate_as(Vec::new());
    Ok(Reply::OK)
}

/// DEBUG REPLYBUFFER: changes the rules for the reply buffers of connections.
fn reply_buffer(ctx: &mut Ctx<'_>, what: &Bytes, args: &[Bytes]) -> Result<Reply, Error> {
    let how = &args[3];
    // First do the due resizing by the old rules.
    ctx.node.resize_reply_buffers(ctx.env.monotonic);
    let rules = &mut ctx.node.debug.reply_buffer;
    if what.eq_ignore_ascii_case(b"resizing") {
        rules.resizes = integer(how).is_ok_and(|on| on != 0);
    } else if !what.eq_ignore_ascii_case(b"peak-reset-time") {
        return Err(Error::subcommand("debug", &args[1]));
    } else if how.eq_ignore_ascii_case(b"never") {
        rules.remembers = None;
    } else if how.eq_ignore_ascii_case(b"reset") {
        rules.remembers = ReplyBufferRules::default().remembers;
    } else {
        rules.remembers = u64::try_from(integer(how)?).ok().map(Duration::from_millis);
    }
    Ok(Reply::OK)
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    match (&args[1].to_ascii_lowercase()[..], args.get(2)) {
        (b"clock", Some(verb)) if args.len() == 4 && verb.eq_ignore_ascii_case(b"advance") => {
            advance(ctx, args)
        }
        (b"sleep", Some(seconds)) if args.len() == 3 => {
            // Like C, read text that is not a number as 0.
            let seconds: f64 =
                std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
            if let Ok(time) = Duration::try_from_secs_f64(seconds)
                && !time.is_zero()
            {
                ctx.node.stall(ctx.env.monotonic, time);
            }
            Ok(Reply::OK)
        }
        (b"object", Some(key)) if args.len() == 3 => {
            let (node, now_ms) = (&ctx.node, ctx.now_ms);
            let entry = node.dbs[ctx.db].get(key).ok_or(Error::NO_SUCH_KEY)?;
            Ok(Reply::Status(object(entry, &node.config, now_ms).into()))
        }
        (b"set-active-expire", Some(on)) if args.len() == 3 => {
            ctx.node.debug.active_expire = integer(on).is_ok_and(|on| on != 0);
            Ok(Reply::OK)
        }
        (b"pause-cron", Some(on)) if args.len() == 3 => {
            ctx.node.debug.cron_paused = integer(on).is_ok_and(|on| on != 0);
            Ok(Reply::OK)
        }
        (b"set-skip-checksum-validation", Some(on)) if args.len() == 3 => {
            ctx.node.debug.skip_checksums = integer(on).is_ok_and(|on| on != 0);
            Ok(Reply::OK)
        }
        (b"set-disable-deny-scripts", Some(on)) if args.len() == 3 => {
            ctx.node.debug.scripts_may_debug = integer(on).is_ok_and(|on| on != 0);
            Ok(Reply::OK)
        }
        (b"error", Some(text)) if args.len() == 3 => Err(Error(printable(text, usize::MAX).into())),
        (b"reload", _) => reload(ctx, args),
        (b"loadaof", _) => load_log(ctx, args),
        (b"digest", None) => Ok(Reply::Status(Digest::of_all(&ctx.node.dbs).to_string().into())),
        (b"digest-value", _) => {
            let db = ctx.raw_db();
            let digest = |key: &Bytes| db.get(key).map_or_else(Digest::default, Digest::of);
            let digests = args[2..].iter().map(|key| Reply::Status(digest(key).to_string().into()));
            Ok(Reply::Array(digests.collect()))
        }
        (b"populate", Some(_)) if args.len() <= 5 => populate(ctx, args),
        (b"protocol", Some(kind)) if args.len() == 3 => sample(kind, ctx.protocol()),
        (b"log", Some(text)) if args.len() == 3 => {
            ctx.env.log(Level::Warning, || format!("DEBUG LOG: {}", String::from_utf8_lossy(text)));
            Ok(Reply::OK)
        }
        (b"quicklist-packed-threshold", Some(size)) if args.len() == 3 => {
            // A size of 0 means the default.
            let size = std::str::from_utf8(size).ok().and_then(memory);
            if size.is_some_and(|size| size <= (1 << 32) - (1 << 20)) {
                Ok(Reply::OK)
            } else {
                Err(Error::of("ERR argument must be a memory value bigger than 1 and smaller than 4gb"))
            }
        }
        (b"htstats", Some(db)) if args.len() == 3 => tables(ctx, db),
        (b"htstats-key", Some(key)) if args.len() == 3 => table_of(ctx, key),
        (b"listpack", Some(key)) if args.len() == 3 => structure(ctx, "listpack", key),
        (b"quicklist", Some(key)) if args.len() <= 4 => structure(ctx, "quicklist", key),
        (b"replicate", Some(_)) => {
            let command = Propagated { db: ctx.db, args: args[2..].to_vec(), to: PropagateTo::Replicas };
            ctx.effects.propagated.push(command);
            Ok(Reply::OK)
        }
        // Each of these ends the process, for a different reason.
        (b"segfault" | b"panic" | b"assert" | b"oom", _) => {
            ctx.env.log(Level::Warning, || "A client asked for a crash".into());
            ctx.node.abort();
            Ok(Reply::Silence)
        }
        // Internals of one implementation, which are invisible from outside.
        (b"drop-cluster-packet-filter", Some(number)) if args.len() == 3 => {
            let number = integer(number)?;
            ctx.node.with_cluster(ctx.env, |cluster, _, _| cluster.drop_messages(number));
            Ok(Reply::OK)
        }
        (b"clusterlink", Some(kill)) if args.len() == 5 && kill.eq_ignore_ascii_case(b"kill") => {
            let killed =
                ctx.node.with_cluster(ctx.env, |cluster, _, _| cluster.kill_links(&args[3], &args[4]));
            match killed {
                None => Err(Error::of("ERR Debug option only available for cluster mode enabled setup!")),
                Some(Ok(())) => Ok(Reply::OK),
                Some(Err(why)) => Err(Error(format!("ERR {why}").into())),
            }
        }
        (b"aof-flush-sleep", Some(_)) if args.len() == 3 => Ok(Reply::OK),
        (b"replybuffer", Some(what)) if args.len() == 4 => reply_buffer(ctx, what, args),
        (b"config-rewrite-force-all", None) if ctx.node.config.server.config_file.is_empty() => {
            Err(Error::of("ERR CONFIG-REWRITE-FORCE-ALL failed: Bad address"))
        }
        (b"config-rewrite-force-all", None) => rewrite(ctx, true),
        (b"sdslen", Some(key)) if args.len() == 3 => lengths(ctx, key),
        (b"structsize", None) => Ok(Reply::bulk(STRUCTURES)),
        // This node leaks nothing.
        (b"leak", Some(_)) if args.len() == 3 => Ok(Reply::OK),
        (b"client-eviction", None) => sizes_of_clients(ctx),
        (b"change-repl-id", None) => {
            let id = ctx.env.random_id();
            ctx.node.replication.history.fork(id);
            Ok(Reply::OK)
        }
        (b"help", None) => {
            let title = "DEBUG <subcommand> [<argument> ...], where the subcommand is one of:".to_owned();
            let each = HELP.iter().flat_map(|(usage, what)| [(*usage).to_owned(), format!("    {what}")]);
            let lines = std::iter::once(title).chain(each).map(|line| Reply::Status(line.into()));
            Ok(Reply::Array(lines.collect()))
        }
        _ => Err(Error::subcommand("debug", &args[1])),
    }
}

/// Sizes in bytes of the structures from which MEMORY USAGE is computed.
const STRUCTURES: &str =
    "bits:64 robj:16 dictentry:24 sdshdr5:1 sdshdr8:3 sdshdr16:5 sdshdr32:9 sdshdr64:17 ";

/// DEBUG SDSLEN: the lengths of a key and its text, and their memory. Here, appended text has no
/// spare capacity.
fn lengths(ctx: &Ctx<'_>, key: &Bytes) -> Result<Reply, Error> {
    let entry = ctx.node.dbs[ctx.db].get(key).ok_or(Error::NO_SUCH_KEY)?;
    let Some(value) = text_of(&entry.value) else {
        return Err(Error::of("ERR Not an sds encoded string."));
    };
    let of = |len: usize| {
        let taken = text_memory(len);
        // A short header does not record the capacity.
        let header = match len {
            0..32 => return (0, taken),
            32..256 => 3,
            256..65_536 => 5,
            _ => 9,
        };
        (taken - header - len - 1, taken)
    };
    let (key_room, key_taken) = of(key.len());
    let (room, taken) = if entry.value.encoding() == "embstr" {
        (0, embedded_memory(value))
    } else {
        // A set value is cut to its length if more than a tenth would be spare.
        let (room, taken) = of(value);
        (if room > value / 10 { 0 } else { room }, taken)
    };
    let text = format!(
        "key_sds_len:{}, key_sds_avail:{key_room}, key_zmalloc: {key_taken}, val_sds_len:{value}, val_sds_avail:{room}, \
         val_zmalloc: {taken}",
        key.len(),
    );
    Ok(Reply::Status(text.into()))
}

/// Returns the length of a value that is stored as text.
fn text_of(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) if text.encoding() != "int" => Some(text.bytes().len()),
        _ => None,
    }
}

/// DEBUG CLIENT-EVICTION: counts clients by their memory use, in steps of a factor of two.
fn sizes_of_clients(ctx: &mut Ctx<'_>) -> Result<Reply, Error> {
    const FIRST: usize = 32 << 10;
    const STEPS: usize = 19;
    let config = &ctx.node.config;
    if config.memory.maxmemory_clients.of(config.memory.maxmemory) == 0 {
        return Err(Error::of("ERR maxmemory-clients is disabled."));
    }
    let mut steps = [(0, 0); STEPS];
    let now = ctx.env.monotonic;
    ctx.node.resize_reply_buffers(now);
    let clients = ctx.node.clients.sessions.iter();
    for session in clients.filter(|session| session.role == Role::Client && !session.no_evict) {
        let size = session.memory(now).total;
        let step = (size / FIRST).checked_ilog2().map_or(0, |step| 1 + step as usize).min(STEPS - 1);
        steps[step].0 += size;
        steps[step].1 += 1;
    }
    let mut text = String::new();
    for (step, (size, clients)) in steps.into_iter().enumerate() {
        let least = if step == 0 { 0 } else { FIRST << (step - 1) };
        let range = if step == STEPS - 1 {
            format!("{least:>10}+            ")
        } else {
            format!("{least:>10} - {:>10}", (FIRST << step) - 1)
        };
        let _ = writeln!(text, "bucket {range}: tot-mem: {size:>10}, clients: {clients}");
    }
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// Returns the reply of DEBUG OBJECT about a key. The address of its value is constant.
fn object(entry: &Entry, config: &Config, now_ms: i64) -> String {
    let idle = entry.usage.idle_ms(now_ms) / 1000;
    let mut text = format!(
        "Value at:0x7f0000000000 refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{idle}",
        references(&entry.value, shares(config)),
        entry.value.encoding(),
        rdb::saved_len(&entry.value, config),
        (now_ms / 1000 - idle) & 0x00ff_ffff,
    );
    if let Value::List(list) = &entry.value {
        let nodes = rdb::nodes(list, config.keyspace.list_node_size);
        let _ = write!(
            text,
            " ql_nodes:{} ql_avg_node:{:.2} ql_listpack_max:{} ql_compressed:0 ql_uncompressed_size:{}",
            nodes.len(),
            list.len() as f64 / nodes.len() as f64,
            config.keyspace.list_node_size,
            nodes.iter().map(rdb::Listpack::size).sum::<usize>(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        generation::Generation,
        keyspace::{Db, Str, Usage},
    };

    // Replies of redis-server 7.0.15 for the same values, except addresses and times.
    #[test]
    fn an_object_is_described_as_a_server_describes_it() {
        let text = |text: &str| Value::String(Str::new(Bytes::copy_from_slice(text.as_bytes())));
        let list = || Value::List(["a", "b", "c"].into_iter().map(Bytes::from).collect());
        for (value, refcount, encoding, len, more) in [
            (text("1"), i32::MAX, "int", 2, ""),
            (text("123456"), 1, "int", 5, ""),
            (text("hello"), 1, "embstr", 6, ""),
            (text(&"a".repeat(70)), 1, "raw", 13, ""),
            (
                list(),
                1,
                "quicklist",
                19,
                " ql_nodes:1 ql_avg_node:3.00 ql_listpack_max:-2 ql_compressed:0 ql_uncompressed_size:16",
            ),
        ] {
            let mut db = Db::default();
            db.insert("k", value, None, Usage::new(102_904_000));
            let entry = db.get(b"k").expect("it was just made");
            assert_eq!(
                object(entry, &Config::of(Generation::Redis70), 102_905_000),
                format!(
                    "Value at:0x7f0000000000 refcount:{refcount} encoding:{encoding} serializedlength:{len} lru:102904 \
                     lru_seconds_idle:1{more}"
                )
            );
        }
    }
}
