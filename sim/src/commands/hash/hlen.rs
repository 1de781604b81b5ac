//! HLEN key: counts the fields.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hlen",
    group: Group::Hash,
    since: "2.0.0",
    summary: "How many fields a hash has.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<Hash>(&args[1])?.map_or(0, Hash::len).into())
}
