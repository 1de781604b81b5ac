//! COMMAND: a description of each command, for clients; its subcommands give details.

use bytes::Bytes;

use super::catalogue::{all, describe};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command",
    group: Group::Server,
    since: "2.8.13",
    summary: "Describes the commands.",
    arity: -1,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[
        &super::command_count::SPEC,
        &super::command_docs::SPEC,
        &super::command_getkeys::SPEC,
        &super::command_getkeysandflags::SPEC,
        &super::command_help::SPEC,
        &super::command_info::SPEC,
        &super::command_list::SPEC,
    ],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    Ok(Reply::Array(all(ctx.node).map(|spec| describe(generation, spec)).collect()))
}
