//! CLUSTER GETSLOTMIGRATIONS: shows the migrations under way, and those that have ended.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|getslotmigrations",
    group: Group::Cluster,
    since: "valkey 9.0.0",
    summary: "Shows the migrations of slots under way, and those that have ended.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, _| cluster.show_jobs())
}
