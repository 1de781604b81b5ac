//! The key specifications of every command with keys, equal to those of COMMAND INFO of 7.0.
//! Commands with the same use of their keys share a row.

use super::{Begin, Find, KeyFlags, KeySpec};

const RO: KeyFlags = KeyFlags::RO;
const RW: KeyFlags = KeyFlags::RW;
const OW: KeyFlags = KeyFlags::OW;
const RM: KeyFlags = KeyFlags::RM;
const ACCESS: KeyFlags = KeyFlags::ACCESS;
const UPDATE: KeyFlags = KeyFlags::UPDATE;
const INSERT: KeyFlags = KeyFlags::INSERT;
const DELETE: KeyFlags = KeyFlags::DELETE;
const NOT_KEY: KeyFlags = KeyFlags::NOT_KEY;
const INCOMPLETE: KeyFlags = KeyFlags::INCOMPLETE;
const VARIABLE_FLAGS: KeyFlags = KeyFlags::VARIABLE_FLAGS;

impl KeySpec {
    /// Adds the reason for the flags.
    const fn because(self, notes: &'static str) -> KeySpec {
        KeySpec { notes, ..self }
    }
}

const fn spec(begin: Begin, find: Find, flags: &[KeyFlags]) -> KeySpec {
    let (mut all, mut at) = (KeyFlags::empty(), 0);
    while at < flags.len() {
        all = all.union(flags[at]);
        at += 1;
    }
    KeySpec { begin, find, flags: all, notes: "" }
}

/// One key, at an argument.
const fn key(at: usize, flags: &[KeyFlags]) -> KeySpec {
    keys(at, 0, 1, flags)
}

/// Keys from an argument on, to the one `last` positions after it; a negative `last` counts from
/// the end.
const fn keys(at: usize, last: i32, step: usize, flags: &[KeyFlags]) -> KeySpec {
    spec(Begin::Index(at), Find::Range { last, step, limit: 0 }, flags)
}

/// The keys that follow an argument, which is their number.
const fn counted(at: usize, flags: &[KeyFlags]) -> KeySpec {
    spec(Begin::Index(at), Find::Counted { step: 1 }, flags)
}

/// Names of commands, and the specifications that they share.
pub(super) static ROWS: &[(&str, &[KeySpec])] = &[
    ("append hsetnx linsert lpush lpushx pfadd rpush rpushx sadd", &[key(1, &[RW, INSERT])]),
    (
        "bitcount bitfield_ro bitpos dump expiretime geodist geohash geopos georadius_ro \
      georadiusbymember_ro geosearch get getbit getrange hexpiretime hget hgetall hkeys hmget \
      hpexpiretime hpttl hrandfield hscan httl hvals lindex lpos lrange pexpiretime pttl smembers smismember \
      srandmember sscan substr ttl xpending xrange xrevrange zcount zlexcount zmscore \
      zrandmember zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex \
      zrevrangebyscore zrevrank zscan zscore",
        &[key(1, &[RO, ACCESS])],
    ),
    ("bitfield", &[key(1, &[RW, ACCESS, UPDATE, VARIABLE_FLAGS]).because("its subcommands read and write")]),
    ("bitop", &[key(2, &[OW, UPDATE]), keys(3, -1, 1, &[RO, ACCESS])]),
    ("blmove brpoplpush lmove rpoplpush smove", &[key(1, &[RW, ACCESS, DELETE]), key(2, &[RW, INSERT])]),
    ("blmpop bzmpop", &[counted(2, &[RW, ACCESS, DELETE])]),
    ("blpop brpop bzpopmax bzpopmin", &[keys(1, -2, 1, &[RW, ACCESS, DELETE])]),
    ("copy", &[key(1, &[RO, ACCESS]), key(2, &[OW, UPDATE])]),
    (
        "decr decrby getset hincrby hincrbyfloat incr incrby incrbyfloat move setbit \
      zincrby",
        &[key(1, &[RW, ACCESS, UPDATE])],
    ),
    ("del unlink", &[keys(1, -1, 1, &[RM, DELETE])]),
    ("delifeq", &[key(1, &[RM, DELETE])]),
    (
        "eval",
        &[counted(2, &[RW, ACCESS, UPDATE])
            .because("the script's use of its keys is unknown: the most is assumed")],
    ),
    (
        "eval_ro",
        &[counted(2, &[RO, ACCESS]).because("the script's reads of its keys are unknown: all is assumed")],
    ),
    ("evalsha", &[counted(2, &[RW, ACCESS, UPDATE])]),
    ("evalsha_ro", &[counted(2, &[RO, ACCESS])]),
    ("exists touch watch", &[keys(1, -1, 1, &[RO])]),
    (
        "expire expireat geoadd hexpire hexpireat hmset hpersist hpexpire hpexpireat hset hsetex lset \
      persist pexpire pexpireat setrange xack \
      xclaim xsetid zadd",
        &[key(1, &[RW, UPDATE])],
    ),
    (
        "fcall",
        &[counted(2, &[RW, ACCESS, UPDATE])
            .because("the function's use of its keys is unknown: the most is assumed")],
    ),
    (
        "fcall_ro",
        &[counted(2, &[RO, ACCESS]).because("the function's reads of its keys are unknown: all is assumed")],
    ),
    (
        "georadius",
        &[
            key(1, &[RO, ACCESS]),
            spec(Begin::Keyword("STORE", 6), Find::Range { last: 0, step: 1, limit: 0 }, &[OW, UPDATE]),
            spec(Begin::Keyword("STOREDIST", 6), Find::Range { last: 0, step: 1, limit: 0 }, &[OW, UPDATE]),
        ],
    ),
    (
        "georadiusbymember",
        &[
            key(1, &[RO, ACCESS]),
            spec(Begin::Keyword("STORE", 5), Find::Range { last: 0, step: 1, limit: 0 }, &[OW, UPDATE]),
            spec(Begin::Keyword("STOREDIST", 5), Find::Range { last: 0, step: 1, limit: 0 }, &[OW, UPDATE]),
        ],
    ),
    ("geosearchstore zrangestore", &[key(1, &[OW, UPDATE]), key(2, &[RO, ACCESS])]),
    ("getdel hgetdel lpop rpop spop zpopmax zpopmin", &[key(1, &[RW, ACCESS, DELETE])]),
    ("getex hgetex", &[key(1, &[RW, ACCESS, UPDATE]).because("the time to live may change")]),
    (
        "hdel lrem ltrim srem xautoclaim xdel xtrim zrem zremrangebylex zremrangebyrank \
      zremrangebyscore",
        &[key(1, &[RW, DELETE])],
    ),
    ("hexists hlen hstrlen llen scard sismember strlen type xlen zcard", &[key(1, &[RO])]),
    ("lcs", &[keys(1, 1, 1, &[RO, ACCESS])]),
    ("lmpop zmpop", &[counted(1, &[RW, ACCESS, DELETE])]),
    ("memory|usage object|encoding object|freq object|idletime object|refcount", &[key(2, &[RO])]),
    ("mget sdiff sinter sunion", &[keys(1, -1, 1, &[RO, ACCESS])]),
    (
        "migrate",
        &[
            key(3, &[RW, ACCESS, DELETE]),
            spec(
                Begin::Keyword("KEYS", -2),
                Find::Range { last: -1, step: 1, limit: 0 },
                &[RW, ACCESS, DELETE, INCOMPLETE],
            ),
        ],
    ),
    ("mset", &[keys(1, -1, 2, &[OW, UPDATE])]),
    ("msetex", &[spec(Begin::Index(1), Find::Counted { step: 2 }, &[OW, UPDATE])]),
    ("msetnx", &[keys(1, -1, 2, &[OW, INSERT])]),
    ("pfcount", &[keys(1, -1, 1, &[RW, ACCESS]).because("the cached cardinality may be written")]),
    ("pfdebug", &[key(2, &[RW, ACCESS])]),
    ("pfmerge", &[key(1, &[RW, ACCESS, INSERT]), keys(2, -1, 1, &[RO, ACCESS])]),
    ("psetex restore restore-asking setex", &[key(1, &[OW, UPDATE])]),
    ("rename", &[key(1, &[RW, ACCESS, DELETE]), key(2, &[OW, UPDATE])]),
    ("renamenx", &[key(1, &[RW, ACCESS, DELETE]), key(2, &[OW, INSERT])]),
    ("sdiffstore sunionstore", &[key(1, &[OW, UPDATE]), keys(2, -1, 1, &[RO, ACCESS])]),
    ("set", &[key(1, &[RW, ACCESS, UPDATE, VARIABLE_FLAGS]).because("GET reads the old value")]),
    ("setnx", &[key(1, &[OW, INSERT])]),
    ("sintercard zdiff zinter zintercard zunion", &[counted(1, &[RO, ACCESS])]),
    ("sinterstore", &[key(1, &[RW, UPDATE]), keys(2, -1, 1, &[RO, ACCESS])]),
    (
        "sort",
        &[
            key(1, &[RO, ACCESS]),
            spec(Begin::Unknown, Find::Unknown, &[RO, ACCESS])
                .because("BY and GET make names out of what the key holds"),
            spec(Begin::Unknown, Find::Unknown, &[OW, UPDATE]).because("STORE may stand anywhere"),
        ],
    ),
    (
        "sort_ro",
        &[
            key(1, &[RO, ACCESS]),
            spec(Begin::Unknown, Find::Unknown, &[RO, ACCESS])
                .because("BY and GET make names out of what the key holds"),
        ],
    ),
    ("spublish", &[key(1, &[NOT_KEY])]),
    ("ssubscribe sunsubscribe", &[keys(1, -1, 1, &[NOT_KEY])]),
    ("xadd", &[key(1, &[RW, UPDATE]).because("the same call may trim")]),
    ("xgroup|create xgroup|createconsumer", &[key(2, &[RW, INSERT])]),
    ("xgroup|delconsumer xgroup|destroy", &[key(2, &[RW, DELETE])]),
    ("xgroup|setid", &[key(2, &[RW, UPDATE])]),
    ("xinfo|consumers xinfo|groups xinfo|stream", &[key(2, &[RO, ACCESS])]),
    (
        "xread",
        &[spec(Begin::Keyword("STREAMS", 1), Find::Range { last: -1, step: 1, limit: 2 }, &[RO, ACCESS])],
    ),
    (
        "xreadgroup",
        &[spec(Begin::Keyword("STREAMS", 4), Find::Range { last: -1, step: 1, limit: 2 }, &[RO, ACCESS])],
    ),
    ("zdiffstore zinterstore zunionstore", &[key(1, &[OW, UPDATE]), counted(2, &[RO, ACCESS])]),
];
