//! Which events of a command its own client hears of behind the reply, where it listens to them (RESP3).
//!
//! A server writes the reply and the events as it comes to them. That `redis-server` 7.0 writes some events in the midst of a reply
//! (ZPOPMIN, XREADGROUP) is not followed: those come before it. So does the end of a key that SINTERSTORE leaves without
//! elements, which there comes behind it unless a set is missing.

use crate::resp::Reply;

/// Commands, and those of their events that come once the reply is written.
const BEHIND: &[(&str, &str)] = &[
    ("getset", "new set"),
    ("getdel getex", "del expire persist"),
    ("bitfield", "setbit"),
    ("expire pexpire expireat pexpireat", "expire"),
    ("lpush rpush lpushx rpushx", "lpush rpush"),
    ("lpop rpop lmpop blpop brpop blmpop", "lpop rpop del"),
    // What they move is put there before the reply, and taken away behind it.
    ("lmove rpoplpush blmove brpoplpush", "lpop rpop del"),
    ("lset", "lset"),
    ("spop", "del"),
    ("sinterstore", "sinterstore"),
    ("sunionstore sdiffstore", "sunionstore sdiffstore del"),
    ("hset hmset hsetnx hincrby hincrbyfloat", "hset hincrby hincrbyfloat"),
    ("zadd zincrby geoadd", "zadd zincr"),
    ("zpopmin zpopmax bzpopmin bzpopmax zmpop bzmpop", "del"),
    ("zrangestore zunionstore zinterstore zdiffstore", "zrangestore zunionstore zinterstore zdiffstore del"),
    ("xadd", "xadd xtrim"),
    ("xgroup|create xgroup|setid xgroup|destroy", "xgroup-create xgroup-setid xgroup-destroy"),
    ("xsetid", "xsetid"),
];

/// The events of a command, answered with `reply`, that its client hears of behind that; none for most commands.
pub(super) fn events_behind(command: &str, reply: &Reply) -> Option<&'static str> {
    // With GET it answers before it sets.
    if command == "set" {
        return (*reply != Reply::OK).then_some("new set expire");
    }
    let row = BEHIND.iter().find(|(commands, _)| is_among(commands, command));
    row.map(|(_, events)| *events)
}

/// Whether a name is one of some.
pub(super) fn is_among(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}
