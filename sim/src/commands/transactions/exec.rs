//! EXEC: runs the queued commands as one, unless a watched key changed.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec, find, run as run_command},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "exec",
    group: Group::Transactions,
    since: "1.2.0",
    summary: "Runs the commands queued since MULTI.",
    arity: 1,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::NESTS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let session = ctx.session();
    let Some(transaction) = session.transaction.take() else {
        return Err(Error::of("ERR EXEC without MULTI"));
    };
    session.watched.clear();
    let watch_broken = std::mem::take(&mut session.watch_broken);
    if transaction.broken {
        return Err(Error::of("EXECABORT Transaction discarded because of previous errors."));
    }
    if watch_broken {
        return Ok(Reply::NullArray);
    }
    let mut replies = Vec::with_capacity(transaction.queue.len());
    for args in &transaction.queue {
        let db = ctx.session().db;
        let mut nested = Ctx::new(ctx.node, ctx.env, ctx.effects, ctx.conn, db, Origin::Exec, ctx.now_ms);
        replies.push(match find(args) {
            Ok(spec) => run_command(&mut nested, spec, args),
            Err(error) => error.into(),
        });
    }
    Ok(Reply::Array(replies))
}
