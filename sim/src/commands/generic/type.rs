//! TYPE key: the name of the type of a key; `none` for a missing key.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "type",
    group: Group::Generic,
    since: "1.0.0",
    summary: "The type of a key.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Status(
        ctx.lookup(&args[1], Lookup::NO_TOUCH).map_or("none", |entry| entry.value.kind().name()).into(),
    ))
}
