//! CLUSTER FLUSHSLOTS: unassigns all slots of this node.

use bytes::Bytes;

use super::act;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|flushslots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Takes all slots from the node.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    act(ctx, |cluster, _, around| cluster.flush_slots(around))
}
