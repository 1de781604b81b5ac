//! CLUSTER LINKS: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|links",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Describes the links between nodes.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
