//! OBJECT HELP: describes the subcommands.

use crate::commands::{Flags, Group, Keys, Spec, help::run};

pub(super) const SPEC: Spec = Spec {
    name: "object|help",
    group: Group::Generic,
    since: "6.2.0",
    summary: "What the subcommands of OBJECT do.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};
