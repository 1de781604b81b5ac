//! CLUSTER REPLICAS: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|replicas",
    group: Group::Cluster,
    since: "5.0.0",
    summary: "Describes the replicas of a master.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
