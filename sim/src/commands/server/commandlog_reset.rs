//! COMMANDLOG RESET type: forgets the entries of a log.

use bytes::Bytes;

use super::logs::log_of;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "commandlog|reset",
    group: Group::Server,
    since: "valkey 8.1.0",
    summary: "Forgets the entries of a log.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    log_of(ctx.node, &args[2])?.clear();
    Ok(Reply::OK)
}
