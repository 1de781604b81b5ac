//! HTTL key FIELDS numfields field [field ...]: the time to live of fields, in seconds.

use bytes::Bytes;

use super::{field_expiry::left, fields::Unit};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "httl",
    group: Group::Hash,
    since: "7.4.0, valkey 9.0.0",
    summary: "The time to live of fields of a hash, in seconds.",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let now_ms = ctx.wall_ms();
    left(ctx, args, now_ms, Unit::Seconds)
}
