//! ACL LIST: the users, as the rules that make them.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|list",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the users with their rules.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let table = access::Table::of(ctx.node);
    let lines = ctx.node.acl.users().map(|user| Reply::bulk(access::line(user, table)));
    Ok(Reply::Array(lines.collect()))
}
