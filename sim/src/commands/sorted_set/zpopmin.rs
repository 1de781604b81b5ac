//! ZPOPMIN key [count]: pops the members with the lowest scores.

use bytes::Bytes;

use super::popping::pop;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Extreme,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zpopmin",
    group: Group::SortedSet,
    since: "5.0.0",
    summary: "Takes the members of a sorted set with the lowest scores.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    pop(ctx, args, Extreme::Min)
}
