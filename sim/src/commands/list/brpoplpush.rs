//! BRPOPLPUSH source destination timeout: like RPOPLPUSH, but waits while the source is empty.

use bytes::Bytes;

use super::moving::shift_or_wait;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, Wait},
    keyspace::End,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "brpoplpush",
    group: Group::List,
    since: "2.2.0",
    summary: "Moves the tail of one list to the head of another, waiting for one.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let wait = Wait::parse(ctx, &args[3])?;
    let repeated = vec![Bytes::from_static(b"RPOPLPUSH"), args[1].clone(), args[2].clone()];
    shift_or_wait(ctx, args, [End::Right, End::Left], wait, repeated)
}
