//! COMMAND COUNT: counts the commands without subcommands.

use bytes::Bytes;

use super::catalogue::all;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command|count",
    group: Group::Server,
    since: "2.8.13",
    summary: "The number of commands.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(all(ctx.node).count().into())
}
