//! RESTORE-ASKING key ttl payload [options]: the RESTORE that MIGRATE sends to a node of a cluster.

use crate::commands::{Flags, Group, Keys, Spec, generic::run_restore};

pub(super) const SPEC: Spec = Spec {
    name: "restore-asking",
    group: Group::Server,
    since: "3.0.0",
    summary: "RESTORE for a key that is being migrated.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::ASKING),
    keys: Keys::FIRST,
    subcommands: &[],
    run: run_restore,
};
