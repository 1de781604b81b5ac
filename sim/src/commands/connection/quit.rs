//! QUIT: replies with OK and closes the connection.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "quit",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Closes the connection.",
    arity: -1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED)
        .union(Flags::ENDS_TRANSACTION)
        .union(Flags::IN_SUBSCRIBER_MODE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    ctx.session().quits = true;
    Ok(Reply::OK)
}
