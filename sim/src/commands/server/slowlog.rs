//! SLOWLOG subcommand ...: the slow commands.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "slowlog",
    group: Group::Server,
    since: "2.2.12",
    summary: "Looks into slow commands.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::slowlog_get::SPEC,
        &super::slowlog_help::SPEC,
        &super::slowlog_len::SPEC,
        &super::slowlog_reset::SPEC,
    ],
    run: help::container,
};
