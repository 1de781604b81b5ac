//! CLUSTER SLAVES: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|slaves",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Describes the replicas of a master.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
