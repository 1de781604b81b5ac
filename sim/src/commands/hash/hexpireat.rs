//! HEXPIREAT key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]: sets the Unix time
//! at which fields expire.

use bytes::Bytes;

use super::{field_expiry::expire, fields::Unit};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hexpireat",
    group: Group::Hash,
    since: "7.4.0, valkey 9.0.0",
    summary: "Sets the Unix time in seconds at which fields of a hash expire.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    expire(ctx, args, 0, Unit::Seconds, "hexpireat")
}
