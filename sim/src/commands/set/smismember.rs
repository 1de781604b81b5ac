//! SMISMEMBER key member [member ...]: checks for each member if a set has it.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "smismember",
    group: Group::Set,
    since: "6.2.0",
    summary: "Whether a set has each of several members.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let set = ctx.read::<Set>(&args[1])?;
    let has = |member: &Bytes| Reply::from(set.is_some_and(|set| set.contains(member)));
    Ok(Reply::Array(args[2..].iter().map(has).collect()))
}
