//! RPOPLPUSH source destination: moves the tail of one list to the head of another.

use bytes::Bytes;

use super::moving::shift;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::End,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "rpoplpush",
    group: Group::List,
    since: "1.2.0",
    summary: "Moves the tail of one list to the head of another.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(shift(ctx, [&args[1], &args[2]], [End::Right, End::Left])?.into())
}
