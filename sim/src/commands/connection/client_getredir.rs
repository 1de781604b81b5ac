//! CLIENT GETREDIR: the connection that receives this connection's invalidations.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|getredir",
    group: Group::Connection,
    since: "6.0.0",
    summary: "The client that receives this connection's invalidations (REDIRECT).",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Integer(ctx.session().redirection()))
}
