//! BGREWRITEAOF: begins the append-only file anew with what there is now; here it is complete at once.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec},
    log::Level,
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
    if ctx.origin == Origin::Exec {
        ctx.node.rewrite_scheduled = true;
        return Ok(Reply::Status("Background append only file rewriting scheduled".into()));
    }
    // Whether it succeeds, INFO says.
    if let Err(error) = ctx.node.rewrite_log(ctx.env) {
        ctx.env.log(Level::Warning, || format!("The append-only file cannot be rewritten: {error}"));
    }
    Ok(Reply::Status("Background append only file rewriting started".into()))
}
