//! CLUSTER SAVECONFIG: writes the node's cluster state to disk.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|saveconfig",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Writes the state of the cluster to disk.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, _| cluster.save())?;
    Ok(Reply::OK)
}
