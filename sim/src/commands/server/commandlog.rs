//! COMMANDLOG subcommand ...: the slow commands, and those with large requests or replies.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "commandlog",
    group: Group::Server,
    since: "valkey 8.1.0",
    summary: "Looks into slow and large commands.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::commandlog_get::SPEC,
        &super::commandlog_help::SPEC,
        &super::commandlog_len::SPEC,
        &super::commandlog_reset::SPEC,
    ],
    run: help::container,
};
