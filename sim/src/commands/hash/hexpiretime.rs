//! HEXPIRETIME key FIELDS numfields field [field ...]: the Unix time at which fields expire, in
//! seconds.

use bytes::Bytes;

use super::{field_expiry::left, fields::Unit};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hexpiretime",
    group: Group::Hash,
    since: "7.4.0, valkey 9.0.0",
    summary: "The Unix time in seconds at which fields of a hash expire.",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    left(ctx, args, 0, Unit::Seconds)
}
