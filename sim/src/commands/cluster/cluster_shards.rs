//! CLUSTER SHARDS: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|shards",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Describes which nodes serve which slots.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
