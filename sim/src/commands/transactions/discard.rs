//! DISCARD: ends a transaction without running it.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "discard",
    group: Group::Transactions,
    since: "2.0.0",
    summary: "Leaves a transaction without running it.",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED)
        .union(Flags::ENDS_TRANSACTION),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let conn = ctx.conn;
    if ctx.session().transaction.is_none() {
        return Err(Error::of("ERR DISCARD without MULTI"));
    }
    ctx.node.clients.discard(conn);
    Ok(Reply::OK)
}
