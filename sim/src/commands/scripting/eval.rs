//! EVAL script numkeys [key ...] [arg ...]: runs a Lua script.

use bytes::Bytes;

use super::run::{Access, by_body};
use crate::{
    commands::{Ctx, Error, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "eval",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Runs a Lua script.",
    arity: -3,
    flags: Access::Full.flags(),
    keys: Keys::Counted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    by_body(ctx, args, Access::Full)
}
