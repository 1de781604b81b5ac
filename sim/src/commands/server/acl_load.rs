//! ACL LOAD: replaces all users by those of the ACL file.

use bytes::Bytes;

use super::acl_deluser::close_all_of;
use crate::{
    acl,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|load",
    group: Group::Server,
    since: "6.0.0",
    summary: "Reads the users from their file.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let path = ctx.node.config.security.aclfile.clone();
    if path.is_empty() {
        return Err(Error::NO_ACL_FILE);
    }
    let file = access::read_users(ctx.node, ctx.env).map_err(|wrong| Error(format!("ERR {wrong}").into()))?;
    let users = access::read_file(
        &path,
        &file,
        access::Table::of(ctx.node),
        ctx.node.config.security.acl_pubsub_default,
    )
    .map_err(|wrong| Error(format!("ERR {wrong}").into()))?;
    let before: Vec<Bytes> = ctx.node.acl.users().map(|user| user.name.clone()).collect();
    ctx.node.acl.replace(users);
    // Users of the same names are new users: keep only the connections of the default user.
    before.iter().filter(|name| **name != acl::DEFAULT).for_each(|name| close_all_of(ctx, name));
    Ok(Reply::OK)
}
