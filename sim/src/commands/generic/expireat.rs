//! EXPIREAT key unix-time-seconds [NX | XX | GT | LT]: sets a key's expiry to a point in time.

use bytes::Bytes;

use super::ttl_unit::{Unit, expire};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "expireat",
    group: Group::Generic,
    since: "1.2.0",
    summary: "Lets a key expire at a Unix time in seconds.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let origin_ms = 0;
    expire(ctx, args, origin_ms, Unit::Seconds, "expireat")
}
