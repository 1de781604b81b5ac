//! CLUSTER SHARDS: the masters with their replicas and slots.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|shards",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Describes which nodes serve which slots.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, around| cluster.show_shards(around))
}
