//! ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]
//! [WITHSCORES]: the members of any of the sorted sets.

use bytes::Bytes;

use super::combining::{Operation, answer};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zunion",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "The members of any of the sorted sets.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    keys: Keys::Counted { count: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    answer(ctx, SPEC.name, args, Operation::Union)
}
