//! CLUSTER ADDSLOTSRANGE first last [first last ...]: assigns ranges of unassigned slots to this
//! node.

use bytes::Bytes;

use super::{act, slots_of_ranges, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|addslotsrange",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Gives ranges of slots to the node.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let slots = slots_of_ranges(&args[2..], SPEC.name)?;
    act(ctx, |cluster, _, _| cluster.change_slots(&slots, true))
}
