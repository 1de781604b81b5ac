//! CLUSTER MIGRATESLOTS SLOTSRANGE first last [first last ...] NODE id [SLOTSRANGE ...]: moves
//! slots with their keys to other nodes.

use bytes::Bytes;

use super::act;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|migrateslots",
    group: Group::Cluster,
    since: "valkey 9.0.0",
    summary: "Moves slots with their keys to other nodes.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    act(ctx, |cluster, env, around| cluster.migrate_slots(env, around, &args[2..]))
}
