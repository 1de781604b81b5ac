//! EXISTS key [key ...]: counts the keys that exist, each as often as it is named.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "exists",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Counts how many of the keys exist.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(args[1..].iter().filter(|key| ctx.lookup(key, Lookup::NO_TOUCH).is_some()).count().into())
}
