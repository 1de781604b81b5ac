//! SCRIPT SHOW sha1: replies with the text of a script.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "script|show",
    group: Group::Scripting,
    since: "valkey 8.0.0",
    summary: "The text of a known script.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let script = ctx.node.scripts.script(&args[2]);
    let script = script.ok_or(Error::of("NOSCRIPT No matching script."))?;
    Ok(Reply::bulk(script.body.clone()))
}
