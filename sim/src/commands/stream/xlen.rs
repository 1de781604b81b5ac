//! XLEN key: counts the entries of a stream.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xlen",
    group: Group::Stream,
    since: "5.0.0",
    summary: "The number of entries of a stream.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<Stream>(&args[1])?.map_or(0, |stream| stream.log.len()).into())
}
