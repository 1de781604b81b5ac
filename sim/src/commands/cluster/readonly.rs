//! READONLY: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "readonly",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lets reads reach a replica of a cluster.",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
