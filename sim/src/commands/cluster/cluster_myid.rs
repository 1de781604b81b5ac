//! CLUSTER MYID: the name of this node.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|myid",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The name of the node.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, _| Reply::bulk(cluster.my_id().as_str()))
}
