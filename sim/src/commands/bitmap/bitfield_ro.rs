//! BITFIELD_RO key [GET type offset ...]: reads integers of any width inside a string.

use bytes::Bytes;

use super::bitfield::carry_out;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bitfield_ro",
    group: Group::Bitmap,
    since: "6.0.0",
    summary: "Reads integers of any width inside a string.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    carry_out(ctx, args, false)
}
