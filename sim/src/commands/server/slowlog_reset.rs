//! SLOWLOG RESET: forgets the slow commands.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "slowlog|reset",
    group: Group::Server,
    since: "2.2.12",
    summary: "Forgets the slow commands.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    ctx.node.slowlog.clear();
    Ok(Reply::OK)
}
