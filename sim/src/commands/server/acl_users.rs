//! ACL USERS: the names of the users.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|users",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the names of the users.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Array(ctx.node.acl.users().map(|user| Reply::from(&user.name)).collect()))
}
