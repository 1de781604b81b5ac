//! MODULE LIST: the modules that the server has at its start.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::{Feature, Generation},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "module|list",
    group: Group::Server,
    since: "4.0.0",
    summary: "Lists the modules.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(modules(ctx.node.config.generation))
}

/// Returns the modules that servers of a generation have at their start.
pub(in crate::commands) fn modules(generation: Generation) -> Reply {
    let lua = Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk("lua")),
        (Reply::bulk("ver"), Reply::Integer(1)),
        (Reply::bulk("path"), Reply::bulk("lua")),
        (Reply::bulk("args"), Reply::Array(Vec::new())),
    ]);
    Reply::Array(if generation.has(Feature::LuaModule) { vec![lua] } else { Vec::new() })
}
