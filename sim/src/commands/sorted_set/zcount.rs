//! ZCOUNT key min max: counts the members in a range of scores.

use bytes::Bytes;

use super::bounds::Bounds;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zcount",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Counts the members of a sorted set in a range of scores.",
    arity: 4,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let bounds = Bounds::scores(&args[2], &args[3])?;
    Ok(ctx.read::<SortedSet>(&args[1])?.map_or(0, |set| bounds.ranks(set, false).len()).into())
}
