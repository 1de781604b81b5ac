//! XGROUP HELP: describes the subcommands.

use crate::commands::{Flags, Group, Keys, Spec, help::run};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup|help",
    group: Group::Stream,
    since: "5.0.0",
    summary: "What the subcommands of XGROUP do.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};
