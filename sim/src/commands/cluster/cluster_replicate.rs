//! CLUSTER REPLICATE node: becomes a replica of a master.

use bytes::Bytes;

use super::act;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|replicate",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Makes the node a replica of another.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    act(ctx, |cluster, _, around| cluster.replicate_node(around, &args[2]))
}
