//! CLIENT CAPA capability ...: names what the client can handle. The only known capability is
//! `redirect`.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|capa",
    group: Group::Connection,
    since: "valkey 8.0.0",
    summary: "Names the capabilities of the client, such as following redirections to the master.",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // No error for an unknown capability: it is one of a later version.
    let redirects = args[2..].iter().any(|capability| capability.eq_ignore_ascii_case(b"redirect"));
    ctx.session().redirects |= redirects;
    Ok(Reply::OK)
}
