//! CLUSTER COUNTKEYSINSLOT: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|countkeysinslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The number of keys in a slot.",
    arity: 3,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
