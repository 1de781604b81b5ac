//! CLUSTER GETKEYSINSLOT slot count: keys that a slot has on this node, the newest first.

use bytes::Bytes;

use super::with;
use crate::{
    cluster::{SLOTS, key_slot},
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|getkeysinslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The names of keys in a slot.",
    arity: 4,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let (slot, count) = (integer(&args[2])?, integer(&args[3])?);
    let slot = u16::try_from(slot).ok().filter(|slot| *slot < SLOTS);
    let (slot, count) =
        slot.zip(usize::try_from(count).ok()).ok_or(Error::of("ERR Invalid slot or number of keys"))?;
    let keys = ctx.node.dbs[0].by_slot(key_slot).keys(slot);
    Ok(Reply::Array(keys.take(count).map(Reply::from).collect()))
}
