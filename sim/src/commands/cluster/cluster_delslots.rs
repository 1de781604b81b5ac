//! CLUSTER DELSLOTS slot [slot ...]: unassigns slots, in the view of this node.

use bytes::Bytes;

use super::{act, slot_of, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|delslots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Takes slots from the node.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let slots = args[2..].iter().map(slot_of).collect::<Result<Vec<_>, _>>()?;
    act(ctx, |cluster, _, _| cluster.change_slots(&slots, false))
}
