//! LPUSH key element [element ...]: adds elements at the head of a list; replies with the new
//! length.

use bytes::Bytes;

use super::pushing::push;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::End,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lpush",
    group: Group::List,
    since: "1.0.0",
    summary: "Adds elements at the head of a list.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    push(ctx, args, End::Left, true)
}
