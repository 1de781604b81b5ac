//! FCALL function numkeys [key ...] [arg ...]: calls a function of a library.

use bytes::Bytes;

use super::run::{Access, by_name};

use crate::{
    commands::{Ctx, Error, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "fcall",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Calls a function.",
    arity: -3,
    flags: Access::Full.flags(),
    keys: Keys::Counted { count: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    by_name(ctx, args, Access::Full)
}
