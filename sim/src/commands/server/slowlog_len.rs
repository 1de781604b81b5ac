//! SLOWLOG LEN: counts the slow commands.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "slowlog|len",
    group: Group::Server,
    since: "2.2.12",
    summary: "The number of slow commands.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.node.slowlog.len().into())
}
