//! HMGET key field [field ...]: the values of several fields; null for a missing one.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hmget",
    group: Group::Hash,
    since: "2.0.0",
    summary: "The values of several fields of a hash.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let hash = ctx.read::<Hash>(&args[1])?;
    let value = |field: &Bytes| hash.and_then(|hash| hash.get(field).cloned()).into();
    Ok(Reply::Array(args[2..].iter().map(value).collect()))
}
