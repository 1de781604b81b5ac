//! CLUSTER ADDSLOTSRANGE: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|addslotsrange",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Gives ranges of slots to the node.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
