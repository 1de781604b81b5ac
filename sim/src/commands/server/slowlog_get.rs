//! SLOWLOG GET [count]: the slow commands, newest first.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    node::slowlog::{Slow, SlowLog},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "slowlog|get",
    group: Group::Server,
    since: "2.2.12",
    summary: "The slow commands.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Default count.
const COUNT: usize = 10;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let count = match args {
        [_, _] => COUNT,
        [_, _, count] => count_of(count)?,
        _ => return Err(Error::subcommand("slowlog", &args[1])),
    };
    Ok(entries(&ctx.node.slowlog, count))
}

/// Reads a number of entries; -1 means all.
pub(super) fn count_of(count: &[u8]) -> Result<usize, Error> {
    match integer(count) {
        Ok(-1) => Ok(usize::MAX),
        Ok(count) if count >= 0 => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(Error::of("ERR count should be greater than or equal to -1")),
    }
}

/// Returns the newest entries of a log.
pub(super) fn entries(log: &SlowLog, count: usize) -> Reply {
    let entry = |slow: &Slow| {
        Reply::Array(vec![
            Reply::Integer(slow.id as i64),
            Reply::Integer(slow.at),
            Reply::Integer(slow.measure),
            Reply::Array(slow.args.iter().map(Reply::from).collect()),
            Reply::bulk(&slow.peer),
            Reply::from(&slow.name),
        ])
    };
    Reply::Array(log.iter().take(count).map(entry).collect())
}
