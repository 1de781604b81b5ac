//! LASTSAVE: the time of the last snapshot to disk, in seconds.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lastsave",
    group: Group::Server,
    since: "1.0.0",
    summary: "The time of the last snapshot to disk, in seconds.",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Integer(ctx.node.persistence.saved_at))
}
