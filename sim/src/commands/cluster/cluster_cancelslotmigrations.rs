//! CLUSTER CANCELSLOTMIGRATIONS: ends the migrations that move slots away from this node.

use bytes::Bytes;

use super::act;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|cancelslotmigrations",
    group: Group::Cluster,
    since: "valkey 9.0.0",
    summary: "Ends the migrations that move slots away from this node.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    act(ctx, |cluster, _, around| cluster.cancel_jobs(around))
}
