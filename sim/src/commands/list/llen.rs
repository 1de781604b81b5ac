//! LLEN key: the length of a list.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "llen",
    group: Group::List,
    since: "1.0.0",
    summary: "The length of a list.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.read::<List>(&args[1])?.map_or(0, List::len).into())
}
