//! COMMANDLOG GET count type: the entries of a log, newest first.

use bytes::Bytes;

use super::{
    logs::log_of,
    slowlog_get::{count_of, entries},
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "commandlog|get",
    group: Group::Server,
    since: "valkey 8.1.0",
    summary: "The entries of a log.",
    arity: 4,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let count = count_of(&args[2])?;
    Ok(entries(log_of(ctx.node, &args[3])?, count))
}
