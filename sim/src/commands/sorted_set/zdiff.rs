//! ZDIFF numkeys key [key ...] [WITHSCORES]: the members of the first sorted set that are in no
//! other.

use bytes::Bytes;

use super::combining::{Operation, answer};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zdiff",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "The members of the first sorted set that no other has.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    keys: Keys::Counted { count: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    answer(ctx, SPEC.name, args, Operation::Difference)
}
