//! ZINTERCARD numkeys key [key ...] [LIMIT limit]: counts the members common to all sorted sets.

use bytes::Bytes;

use super::combining::count_common;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zintercard",
    group: Group::SortedSet,
    since: "7.0.0",
    summary: "Counts the members common to all sorted sets.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    keys: Keys::Counted { count: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    count_common(ctx, args)
}
