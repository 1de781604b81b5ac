//! CLUSTER COUNT-FAILURE-REPORTS node: counts the masters that recently reported a node as down.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|count-failure-reports",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The number of nodes that report another one as failed.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let count = with(ctx, |cluster, _, around| cluster.failure_reports(around, &args[2]))?;
    count.map(Reply::from).map_err(|why| Error(format!("ERR {why}").into()))
}
