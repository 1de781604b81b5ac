//! DECR key: subtracts one from an integer.

use bytes::Bytes;

use super::incrby::add;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "decr",
    group: Group::String,
    since: "1.0.0",
    summary: "Subtracts one from an integer.",
    arity: 2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    add(ctx, &args[1], -1)
}
