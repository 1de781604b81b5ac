//! CLUSTER FORGET node: forgets a node, and does not add it again for a minute.

use bytes::Bytes;

use super::act;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|forget",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Removes a node from the table of nodes.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    act(ctx, |cluster, _, around| cluster.forget(around, &args[2]))
}
