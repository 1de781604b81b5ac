//! HSTRLEN key field: the length of the value of a field in bytes.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hstrlen",
    group: Group::Hash,
    since: "3.2.0",
    summary: "The length of the value of a field of a hash.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<Hash>(&args[1])?.and_then(|hash| hash.get(&args[2])).map_or(0, |value| value.len()).into())
}
