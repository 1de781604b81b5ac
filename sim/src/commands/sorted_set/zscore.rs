//! ZSCORE key member: the score of a member.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zscore",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "The score of a member of a sorted set.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let score = ctx.read::<SortedSet>(&args[1])?.and_then(|set| set.score(&args[2]));
    Ok(score.map_or(Reply::Null, Reply::Double))
}
