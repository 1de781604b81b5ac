//! ACL SAVE: writes the users to the access list file.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    durability::DiskFull,
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
    if ctx.node.config.aclfile.is_empty() {
        return Err(Error::NO_ACL_FILE);
    }
    let mut file = Vec::new();
    for user in ctx.node.acl.users() {
        file.extend(access::line(user));
        file.push(b'\n');
    }
    let written = match &ctx.env.files {
        Some(files) => {
            let written = files.write(&ctx.node.config.aclfile, &String::from_utf8_lossy(&file));
            written.map_err(|wrong| wrong.to_string())
        }
        None if ctx.node.persistence.disk.full => Err(DiskFull.to_string()),
        None => {
            ctx.node.persistence.disk.users = Some(file.into());
            Ok(())
        }
    };
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
