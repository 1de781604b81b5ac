//! CLUSTER FLUSHSLOTS: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|flushslots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Takes all slots from the node.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
