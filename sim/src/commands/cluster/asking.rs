//! ASKING: refused, because this node is in no cluster.

use super::disabled;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "asking",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lets the next command reach a slot that is being moved here.",
    arity: 1,
    flags: Flags::FAST,
    keys: Keys::None,
    subcommands: &[],
    run: disabled,
};
