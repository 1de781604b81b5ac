//! COMMANDLOG HELP: lists the subcommands.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "commandlog|help",
    group: Group::Server,
    since: "valkey 8.1.0",
    summary: "Lists the subcommands.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run: help::run,
};
