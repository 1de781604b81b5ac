//! ZCARD key: the number of members of a sorted set.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zcard",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "The number of members of a sorted set.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<SortedSet>(&args[1])?.map_or(0, SortedSet::len).into())
}
