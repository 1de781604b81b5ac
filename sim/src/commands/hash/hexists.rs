//! HEXISTS key field: checks if a field exists.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hexists",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Whether a hash has a field.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<Hash>(&args[1])?.is_some_and(|hash| hash.contains(&args[2])).into())
}
