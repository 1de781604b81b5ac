//! BGSAVE [SCHEDULE]: saves a snapshot to disk without making clients wait.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bgsave",
    group: Group::Server,
    since: "1.0.0",
    summary: "Saves a snapshot to disk in the background.",
    arity: -1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let schedule = args.len() == 2 && args[1].eq_ignore_ascii_case(b"schedule");
    if args.len() > 1 && !schedule {
        return Err(Error::SYNTAX);
    }
    if ctx.node.writes_snapshot() {
        return Err(Error::SAVING);
    }
    let in_exec = ctx.origin == Origin::Exec;
    if ctx.node.rewrites_log() && !in_exec && !schedule {
        return Err(Error::WRITING_ASIDE);
    }
    if ctx.node.rewrites_log() || in_exec {
        ctx.node.persistence.save_scheduled = true;
        return Ok(Reply::Status("Background saving scheduled".into()));
    }
    ctx.node.begin_snapshot(ctx.env);
    Ok(Reply::Status("Background saving started".into()))
}
