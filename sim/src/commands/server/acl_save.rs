//! ACL SAVE: writes the users to the ACL file.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    log::Level,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|save",
    group: Group::Server,
    since: "6.0.0",
    summary: "Writes the users to their file.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.config.security.aclfile.is_empty() {
        return Err(Error::NO_ACL_FILE);
    }
    let (path, table) = (ctx.node.config.security.aclfile.clone(), access::Table::of(ctx.node));
    let mut file = Vec::new();
    for user in ctx.node.acl.users() {
        file.extend(access::line(user, table));
        file.push(b'\n');
    }
    let written = ctx.write_file(&path, file.into(), |disk, file| disk.users = Some(file));
    match written {
        Ok(()) => Ok(Reply::OK),
        Err(wrong) => {
            ctx.env.log(Level::Warning, || format!("The users cannot be saved: {wrong}"));
            Err(Error::of(
                "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
            ))
        }
    }
}
