//! CLUSTER COUNT-FAILURE-REPORTS: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|count-failure-reports",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The number of nodes that report another one as failed.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
