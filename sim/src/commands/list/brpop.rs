//! BRPOP key [key ...] timeout: pops an element from the tail of the first list that has one, or
//! waits for one.

use bytes::Bytes;

use super::popping::pop_or_wait;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::End,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "brpop",
    group: Group::List,
    since: "2.0.0",
    summary: "Takes an element from the tail of the first non-empty list, waiting for one.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING),
    keys: Keys::Range { first: 1, last: -2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    pop_or_wait(ctx, args, End::Right)
}
