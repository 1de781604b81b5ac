//! BZPOPMIN key [key ...] timeout: pops the member with the lowest score from the first sorted set
//! that has any, or waits for one.

use bytes::Bytes;

use super::popping::pop_or_wait;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Extreme,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bzpopmin",
    group: Group::SortedSet,
    since: "5.0.0",
    summary: "Takes the member with the lowest score of the first non-empty sorted set, waiting for one.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING).union(Flags::FAST),
    keys: Keys::Range { first: 1, last: -2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    pop_or_wait(ctx, args, Extreme::Min)
}
