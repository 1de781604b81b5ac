//! EVAL_RO script numkeys [key ...] [arg ...]: runs a Lua script that may only read.

use bytes::Bytes;

use super::run::{Access, by_body};
use crate::{
    commands::{Ctx, Error, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "eval_ro",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Runs a Lua script that only reads.",
    arity: -3,
    flags: Access::ReadOnly.flags(),
    keys: Keys::Counted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    by_body(ctx, args, Access::ReadOnly)
}
