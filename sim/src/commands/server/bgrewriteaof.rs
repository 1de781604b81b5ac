//! BGREWRITEAOF: begins the append-only file anew with what there is now; here it is complete at once.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bgrewriteaof",
    group: Group::Server,
    since: "1.0.0",
    summary: "Rewrites the append-only file in the background.",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let now_secs = ctx.env.wall.as_secs();
    // Whether it succeeds, INFO says.
    let _ = ctx.node.rewrite_log(now_secs);
    Ok(Reply::Status("Background append only file rewriting started".into()))
}
