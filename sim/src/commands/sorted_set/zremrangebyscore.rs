//! ZREMRANGEBYSCORE key min max: removes the members in a range of scores; replies with their
//! number.

use bytes::Bytes;

use super::{bounds::Bounds, removing::remove};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zremrangebyscore",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Removes the members of a sorted set in a range of scores.",
    arity: 4,
    flags: Flags::WRITE,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    remove(ctx, &args[1], &Bounds::scores(&args[2], &args[3])?, "zremrangebyscore")
}
