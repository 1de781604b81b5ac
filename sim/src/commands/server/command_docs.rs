//! COMMAND DOCS [name ...]: the documentation of commands.

use bytes::Bytes;

use super::catalogue::{all, by_full_name, document};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command|docs",
    group: Group::Server,
    since: "7.0.0",
    summary: "Documents commands.",
    arity: -2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    let documented = if args.len() == 2 {
        all(ctx.node).map(|spec| document(generation, spec)).collect()
    } else {
        args[2..]
            .iter()
            .filter_map(|name| by_full_name(ctx.node, name))
            .map(|spec| document(generation, spec))
            .collect()
    };
    Ok(Reply::Map(documented))
}
