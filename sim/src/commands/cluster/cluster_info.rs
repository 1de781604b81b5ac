//! CLUSTER INFO: the state of the cluster.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|info",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Describes the state of the cluster.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, _| cluster.show_info())
}
