//! SLOWLOG GET [count]: the slow commands, newest first.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    node::slowlog::Slow,
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
        [_, _, count] => match integer(count) {
            Ok(-1) => usize::MAX,
            Ok(count) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
            _ => return Err(Error::of("ERR count should be greater than or equal to -1")),
        },
        _ => return Err(Error::subcommand("slowlog", &args[1])),
    };
    let entry = |slow: &Slow| {
        Reply::Array(vec![
            Reply::Integer(slow.id as i64),
            Reply::Integer(slow.at),
            Reply::Integer(slow.took_us),
            Reply::Array(slow.args.iter().map(Reply::from).collect()),
            Reply::bulk(&slow.peer),
            Reply::from(&slow.name),
        ])
    };
    Ok(Reply::Array(ctx.node.slowlog.iter().take(count).map(entry).collect()))
}
