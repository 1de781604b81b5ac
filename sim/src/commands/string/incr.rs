//! INCR key: adds one to an integer.

use bytes::Bytes;

use super::incrby::add;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "incr",
    group: Group::String,
    since: "1.0.0",
    summary: "Adds one to an integer.",
    arity: 2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    add(ctx, &args[1], 1)
}
