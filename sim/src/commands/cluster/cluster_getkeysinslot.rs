//! CLUSTER GETKEYSINSLOT: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|getkeysinslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The names of keys in a slot.",
    arity: 4,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
