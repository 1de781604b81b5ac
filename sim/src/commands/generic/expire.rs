//! EXPIRE key seconds [NX | XX | GT | LT]: sets the TTL of a key.

use bytes::Bytes;

use super::ttl_unit::{Unit, expire};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "expire",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Gives a key a time to live in seconds.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let origin_ms = ctx.wall_ms();
    expire(ctx, args, origin_ms, Unit::Seconds, "expire")
}
