//! LPOP key [count]: pops elements from the head of a list.

use bytes::Bytes;

use super::popping::pop;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::End,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lpop",
    group: Group::List,
    since: "1.0.0",
    summary: "Takes elements from the head of a list.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    pop(ctx, args, End::Left, "lpop")
}
