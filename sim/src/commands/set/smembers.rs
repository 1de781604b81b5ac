//! SMEMBERS key: all members of a set.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "smembers",
    group: Group::Set,
    since: "1.0.0",
    summary: "All members of a set.",
    arity: 2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let members = ctx.read::<Set>(&args[1])?.map(|set| set.iter().map(Reply::from).collect());
    Ok(Reply::Set(members.unwrap_or_default()))
}
