//! READWRITE: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "readwrite",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Sends reads to the master again.",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
