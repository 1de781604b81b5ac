//! SLOWLOG GET [count]: the slow commands, of which there are none.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
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

fn run(_: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    match args {
        [_, _] => Ok(Reply::Array(Vec::new())),
        [_, _, count] if integer(count).is_ok_and(|count| count >= -1) => Ok(Reply::Array(Vec::new())),
        [_, _, _] => Err(Error::of("ERR count should be greater than or equal to -1")),
        _ => Err(Error::subcommand("slowlog", &args[1])),
    }
}
