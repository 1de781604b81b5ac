//! ZREMRANGEBYRANK key min max: removes the members in a range of ranks; replies with their number.

use bytes::Bytes;

use super::{bounds::Bounds, removing::remove};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zremrangebyrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Removes the members of a sorted set in a range of ranks.",
    arity: 4,
    flags: Flags::WRITE,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    remove(ctx, &args[1], &Bounds::Rank(integer(&args[2])?, integer(&args[3])?), "zremrangebyrank")
}
