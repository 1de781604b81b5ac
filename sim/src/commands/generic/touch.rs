//! TOUCH key [key ...]: marks keys as used without reading them; counts those that exist.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "touch",
    group: Group::Generic,
    since: "3.2.1",
    summary: "Updates the last access of keys.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(args[1..].iter().filter(|key| ctx.lookup(key, Lookup::TOUCH).is_some()).count().into())
}
