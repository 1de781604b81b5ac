//! EVALSHA_RO sha1 numkeys [key ...] [arg ...]: runs a known script that may only read.

use bytes::Bytes;

use super::run::{Access, by_sha};
use crate::{
    commands::{Ctx, Error, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "evalsha_ro",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Runs a known Lua script, which only reads, by its SHA-1.",
    arity: -3,
    flags: Access::ReadOnly.flags(),
    keys: Keys::Counted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    by_sha(ctx, args, Access::ReadOnly)
}
