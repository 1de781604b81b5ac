//! MGET key [key ...]: the strings of several keys; null for a missing key or another type.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "mget",
    group: Group::String,
    since: "1.0.0",
    summary: "The strings of several keys.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let values = args[1..].iter().map(|key| match ctx.read::<Str>(key) {
        Ok(Some(string)) => string.bytes().into(),
        Ok(None) | Err(_) => Reply::Null,
    });
    Ok(Reply::Array(values.collect()))
}
