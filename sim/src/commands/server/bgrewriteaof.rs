//! BGREWRITEAOF: rewrites the AOF from the current data, without making clients wait.

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
    if ctx.node.rewrites_log() {
        return Err(Error("ERR Background append only file rewriting already in progress".into()));
    }
    if ctx.node.writes_snapshot() || ctx.origin == Origin::Exec {
        ctx.node.persistence.rewrite_scheduled = true;
        // An explicit request ends the delay that failed rewrites impose.
        ctx.node.stats.rewrites_failed = 0;
        return Ok(Reply::Status("Background append only file rewriting scheduled".into()));
    }
    // INFO reports the later success or failure.
    if let Err(error) = ctx.node.begin_rewrite(ctx.env) {
        ctx.env.log(Level::Warning, || format!("The append-only file cannot be rewritten: {error}"));
        return Err(Error(
            "ERR Can't execute an AOF background rewriting. Please check the server logs for more information."
                .into(),
        ));
    }
    Ok(Reply::Status("Background append only file rewriting started".into()))
}
