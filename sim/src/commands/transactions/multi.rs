//! MULTI: queues the following commands until EXEC or DISCARD.

use bytes::Bytes;

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
    let session = ctx.session();
    if session.transaction.is_some() {
        return Err(Error::of("ERR MULTI calls can not be nested"));
    }
    session.has_queued = true;
    session.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}
