//! HGET key field: the value of one field.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hget",
    group: Group::Hash,
    since: "2.0.0",
    summary: "The value of a field of a hash.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<Hash>(&args[1])?.and_then(|hash| hash.get(&args[2]).cloned()).into())
}
