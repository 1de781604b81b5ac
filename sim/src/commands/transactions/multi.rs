//! MULTI: queues the following commands until EXEC or DISCARD.

use bytes::Bytes;

use super::refused;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::clients::Transaction,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "multi",
    group: Group::Transactions,
    since: "1.2.0",
    summary: "Starts a transaction.",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    if ctx.session().transaction.is_some() {
        return Err(refused(ctx, "multi", "ERR MULTI calls can not be nested"));
    }
    let session = ctx.session();
    session.has_queued = true;
    session.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}
