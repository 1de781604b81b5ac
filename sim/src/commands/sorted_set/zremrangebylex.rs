//! ZREMRANGEBYLEX key min max: removes the members in a range of members; replies with their
//! number.

use bytes::Bytes;

use super::{bounds::Bounds, removing::remove};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zremrangebylex",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "Removes the members of a sorted set in a range of members.",
    arity: 4,
    flags: Flags::WRITE,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    remove(ctx, &args[1], &Bounds::members(&args[2], &args[3])?, "zremrangebylex")
}
