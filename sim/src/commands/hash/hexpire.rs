//! HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]: sets the time to
//! live of fields.

use bytes::Bytes;

use super::{field_expiry::expire, fields::Unit};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hexpire",
    group: Group::Hash,
    since: "7.4.0, valkey 9.0.0",
    summary: "Sets the time to live of fields of a hash, in seconds.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let now_ms = ctx.wall_ms();
    expire(ctx, args, now_ms, Unit::Seconds, "hexpire")
}
