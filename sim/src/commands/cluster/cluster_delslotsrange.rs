//! CLUSTER DELSLOTSRANGE first last [first last ...]: unassigns ranges of slots, in the view of
//! this node.

use bytes::Bytes;

use super::{act, slots_of_ranges, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|delslotsrange",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Takes ranges of slots from the node.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let slots = slots_of_ranges(&args[2..], SPEC.name)?;
    act(ctx, |cluster, _, _| cluster.change_slots(&slots, false))
}
