//! ZRANK key member: the number of members before this one, from the lowest score up.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "The rank of a member of a sorted set, by ascending score.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let rank = ctx.read::<SortedSet>(&args[1])?.and_then(|set| set.rank(&args[2]));
    Ok(rank.map_or(Reply::Null, Reply::from))
}
