//! COMMAND GETKEYSANDFLAGS command [argument ...]: the keys among the arguments, each with its use.

use bytes::Bytes;

use super::catalogue::{key_flags, keys_of};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command|getkeysandflags",
    group: Group::Server,
    since: "7.0.0",
    summary: "Finds the keys of a command, and how it uses them.",
    arity: -3,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let with_flags = |(key, flags)| Reply::Array(vec![Reply::from(key), key_flags(flags)]);
    Ok(Reply::Array(keys_of(ctx.node, &args[2..])?.into_iter().map(with_flags).collect()))
}
