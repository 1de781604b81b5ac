//! CLUSTER HELP: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|help",
    group: Group::Cluster,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
