//! ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN
//! | MAX]: stores the members of any of the sorted sets; replies with their number.

use bytes::Bytes;

use super::combining::{Operation, combine_and_store};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zunionstore",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Stores the members of any of the sorted sets.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    keys: Keys::FirstAndCounted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    combine_and_store(ctx, SPEC.name, args, Operation::Union)
}
