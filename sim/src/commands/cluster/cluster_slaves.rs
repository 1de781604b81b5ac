//! CLUSTER SLAVES node: the replicas of a master.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|slaves",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Describes the replicas of a master.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let shown = with(ctx, |cluster, _, _| cluster.show_replicas(&args[2]))?;
    shown.map_err(|why| Error(format!("ERR {why}").into()))
}
