//! CLIENT INFO: the line of CLIENT LIST for this connection.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|info",
    group: Group::Connection,
    since: "6.2.0",
    summary: "Describes the connection.",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let now = ctx.env.monotonic;
    ctx.node.resize_reply_buffer(ctx.conn, now);
    let generation = ctx.node.config.generation;
    Ok(Reply::Verbatim(*b"txt", ctx.session().describe(now, generation).into()))
}
