//! FUNCTION DUMP: all libraries as a payload for FUNCTION RESTORE.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    durability::rdb,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|dump",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "All libraries in one payload.",
    arity: 2,
    flags: Flags::NOSCRIPT,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let mut out = rdb::Output::new(&ctx.node.config);
    for library in ctx.node.libraries.iter() {
        rdb::library(&mut out, &library.code);
    }
    Ok(rdb::seal(out.into_bytes(), ctx.node.config.generation).into())
}
