//! CLUSTER HELP: lists the subcommands.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, help},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|help",
    group: Group::Cluster,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    help::run(ctx, args)
}
