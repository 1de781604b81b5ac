//! CLUSTER RESET: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|reset",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Forgets the cluster.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
