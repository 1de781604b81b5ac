//! ZMSCORE key member [member ...]: the scores of members.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zmscore",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "The scores of several members of a sorted set.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let set = ctx.read::<SortedSet>(&args[1])?;
    let score = |member: &Bytes| set.and_then(|set| set.score(member)).map_or(Reply::Null, Reply::Double);
    Ok(Reply::Array(args[2..].iter().map(score).collect()))
}
