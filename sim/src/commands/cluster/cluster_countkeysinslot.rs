//! CLUSTER COUNTKEYSINSLOT slot: counts the keys of a slot on this node.

use bytes::Bytes;

use super::with;
use crate::{
    cluster::{SLOTS, key_slot},
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|countkeysinslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The number of keys in a slot.",
    arity: 3,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let slot = integer(&args[2])?;
    let slot = u16::try_from(slot).ok().filter(|slot| *slot < SLOTS).ok_or(Error::of("ERR Invalid slot"))?;
    Ok(ctx.node.dbs[0].by_slot(key_slot).count(slot).into())
}
