//! ZREVRANK key member: the number of members before this one, from the highest score down.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrevrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "The rank of a member of a sorted set, by descending score.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let Some(set) = ctx.read::<SortedSet>(&args[1])? else { return Ok(Reply::Null) };
    Ok(set.rank(&args[2]).map_or(Reply::Null, |rank| (set.len() - 1 - rank).into()))
}
