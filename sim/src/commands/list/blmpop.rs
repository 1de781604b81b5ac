//! BLMPOP timeout numkeys key [key ...] LEFT | RIGHT [COUNT count]: like LMPOP, but waits while all
//! lists are empty.

use bytes::Bytes;

use super::popping::pop_from_many;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "blmpop",
    group: Group::List,
    since: "7.0.0",
    summary: "Takes elements from the first non-empty list, waiting for one.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    keys: Keys::Counted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    pop_from_many(ctx, args, &args[2..], Some(&args[1]))
}
