//! EVALSHA sha1 numkeys [key ...] [arg ...]: runs a script that the server already knows.

use bytes::Bytes;

use super::run::{Access, by_sha};
use crate::{
    commands::{Ctx, Error, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "evalsha",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Runs a known Lua script by its SHA-1.",
    arity: -3,
    flags: Access::Full.flags(),
    keys: Keys::Counted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    by_sha(ctx, args, Access::Full)
}
