//! CLIENT GETNAME: the name of the connection, null for none.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|getname",
    group: Group::Connection,
    since: "2.6.9",
    summary: "The name of the connection.",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Some(ctx.session().name.clone()).filter(|name| !name.is_empty()).into())
}
