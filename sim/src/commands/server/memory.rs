//! MEMORY subcommand ...: memory use, as estimated by keyspace/memory.rs.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "memory",
    group: Group::Server,
    since: "4.0.0",
    summary: "Looks into the use of memory.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::memory_doctor::SPEC,
        &super::memory_help::SPEC,
        &super::memory_malloc_stats::SPEC,
        &super::memory_purge::SPEC,
        &super::memory_stats::SPEC,
        &super::memory_usage::SPEC,
    ],
    run: help::container,
};
