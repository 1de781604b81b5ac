//! SISMEMBER key member: checks if a set has a member.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sismember",
    group: Group::Set,
    since: "1.0.0",
    summary: "Whether a set has a member.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<Set>(&args[1])?.is_some_and(|set| set.contains(&args[2])).into())
}
