//! COMMAND GETKEYS command [argument ...]: the keys among the arguments.

use bytes::Bytes;

use super::catalogue::keys_of;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "command|getkeys",
    group: Group::Server,
    since: "2.8.13",
    summary: "Finds the keys of a command.",
    arity: -3,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Array(keys_of(ctx.node, &args[2..])?.into_iter().map(|(key, _)| Reply::from(key)).collect()))
}
