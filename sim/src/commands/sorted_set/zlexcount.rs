//! ZLEXCOUNT key min max: counts the members in a range of members.

use bytes::Bytes;

use super::bounds::Bounds;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zlexcount",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "Counts the members of a sorted set in a range of members.",
    arity: 4,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let bounds = Bounds::members(&args[2], &args[3])?;
    Ok(ctx.read::<SortedSet>(&args[1])?.map_or(0, |set| bounds.ranks(set, false).len()).into())
}
