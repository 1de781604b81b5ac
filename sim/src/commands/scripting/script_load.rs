//! SCRIPT LOAD script: compiles a script and replies with its SHA-1.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
    script::LoadedBy,
};

pub(super) const SPEC: Spec = Spec {
    name: "script|load",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Compiles a script for EVALSHA.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let script =
        ctx.node.scripts.load(&args[2], LoadedBy::ScriptLoad).map_err(|error| Error(error.0.into()))?;
    Ok(Reply::bulk(&script.sha))
}
