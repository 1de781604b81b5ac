//! CLUSTER MYSHARDID: the id of the shard of this node.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|myshardid",
    group: Group::Cluster,
    since: "7.2.0",
    summary: "The id of the shard of the node.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, _| Reply::bulk(cluster.my_shard_id().as_str()))
}
