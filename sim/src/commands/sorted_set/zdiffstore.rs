//! ZDIFFSTORE destination numkeys key [key ...]: stores the members of the first sorted set that
//! are in no other; replies with their number.

use bytes::Bytes;

use super::combining::{Operation, combine_and_store};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zdiffstore",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Stores the members of the first sorted set that no other has.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    keys: Keys::FirstAndCounted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    combine_and_store(ctx, SPEC.name, args, Operation::Difference)
}
