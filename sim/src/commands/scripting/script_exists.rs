//! SCRIPT EXISTS sha1 [sha1 ...]: checks for each SHA-1 if a script is known.

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
