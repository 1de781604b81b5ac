//! SENTINEL HELP: lists the subcommands.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, help},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|help",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Describes the subcommands.",
    arity: 2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    help::run(ctx, args)
}
