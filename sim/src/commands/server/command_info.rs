//! COMMAND INFO [name ...]: a description of commands; null for an unknown name.

use bytes::Bytes;

use super::catalogue::{all, by_full_name, describe};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command|info",
    group: Group::Server,
    since: "2.8.13",
    summary: "Describes some commands.",
    arity: -2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    if args.len() == 2 {
        return Ok(Reply::Array(all(ctx.node).map(|spec| describe(generation, spec)).collect()));
    }
    let described = args[2..]
        .iter()
        .map(|name| by_full_name(ctx.node, name).map_or(Reply::Null, |spec| describe(generation, spec)));
    Ok(Reply::Array(described.collect()))
}
