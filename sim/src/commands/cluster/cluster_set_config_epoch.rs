//! CLUSTER SET-CONFIG-EPOCH epoch: sets the config epoch of a fresh node.

use bytes::Bytes;

use super::{act, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|set-config-epoch",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Sets the epoch of a new node.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let epoch = integer(&args[2])?;
    act(ctx, |cluster, _, _| cluster.set_config_epoch(epoch))
}
