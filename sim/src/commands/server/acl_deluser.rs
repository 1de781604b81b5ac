//! ACL DELUSER name [name ...]: removes users, and closes their connections.

use bytes::Bytes;

use crate::{
    acl,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    event::ConnId,
    node::clients::Role,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|deluser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Removes users.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args[2..].contains(&acl::DEFAULT) {
        return Err(Error::of("ERR The 'default' user cannot be removed"));
    }
    let mut removed = 0;
    for name in &args[2..] {
        if ctx.node.acl.remove(name) {
            removed += 1;
            close_all_of(ctx, name);
        }
    }
    Ok(Reply::Integer(removed))
}

/// Closes the connections of a removed user. The caller still gets its reply.
pub(super) fn close_all_of(ctx: &mut Ctx<'_>, name: &Bytes) {
    let of_user = ctx
        .node
        .clients
        .sessions
        .iter()
        .filter(|session| session.role != Role::Master && session.user == *name);
    for conn in of_user.map(|session| session.id).collect::<Vec<ConnId>>() {
        if conn == ctx.conn {
            let session = ctx.session();
            session.user = acl::DEFAULT;
            session.authenticated = false;
            session.quits = true;
        } else {
            ctx.node.clients.kill(conn);
        }
    }
}
