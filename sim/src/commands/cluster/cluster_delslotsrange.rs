//! CLUSTER DELSLOTSRANGE: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|delslotsrange",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Takes ranges of slots from the node.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
