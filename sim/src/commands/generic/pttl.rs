//! PTTL key: the TTL of a key in milliseconds; -1 for no expiry, -2 for no key.

use bytes::Bytes;

use super::ttl_unit::{Unit, left};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pttl",
    group: Group::Generic,
    since: "2.6.0",
    summary: "The milliseconds until a key expires.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let origin_ms = ctx.wall_ms();
    Ok(left(ctx, &args[1], origin_ms, Unit::Milliseconds))
}
