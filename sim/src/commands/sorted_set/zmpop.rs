//! ZMPOP numkeys key [key ...] MIN | MAX [COUNT count]: pops members from the first sorted set that
//! has any.

use bytes::Bytes;

use super::popping::pop_from_many;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zmpop",
    group: Group::SortedSet,
    since: "7.0.0",
    summary: "Takes members from the first non-empty sorted set.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
    keys: Keys::Counted { count: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    pop_from_many(ctx, args, &args[1..], None)
}
