//! SCRIPT EXISTS sha1 [sha1 ...]: says for each name whether a script is known by it.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "script|exists",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Says which scripts are known.",
    arity: -3,
    flags: Flags::NOSCRIPT,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let known = args[2..].iter().map(|sha| ctx.node.scripts.script(sha).is_some().into());
    Ok(Reply::Array(known.collect()))
}
