//! CLUSTER SETSLOT slot IMPORTING node | MIGRATING node | NODE node | STABLE: moves a slot.

use bytes::Bytes;

use super::{act, slot_of, with};
use crate::{
    cluster::SetSlot,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|setslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Gives a slot to a node, or begins to move it.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let refused = with(ctx, |cluster, _, _| cluster.refuses_set_slot())?;
    if let Some(why) = refused {
        return Err(Error(format!("ERR {why}").into()));
    }
    let slot = slot_of(&args[2])?;
    let to = match (&args[3].to_ascii_lowercase()[..], &args[4..]) {
        (b"migrating", [node]) => SetSlot::Migrating(node),
        (b"importing", [node]) => SetSlot::Importing(node),
        (b"node", [node]) => SetSlot::Node(node),
        (b"stable", []) => SetSlot::Stable,
        _ => {
            let text = "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP";
            return Err(Error::of(text));
        }
    };
    act(ctx, |cluster, env, around| cluster.set_slot(env, around, slot, to))
}
