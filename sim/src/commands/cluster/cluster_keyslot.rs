//! CLUSTER KEYSLOT: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|keyslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The slot of a key.",
    arity: 3,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
