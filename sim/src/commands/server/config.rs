//! CONFIG subcommand ...: reads and changes the options.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "config",
    group: Group::Server,
    since: "2.0.0",
    summary: "Reads and changes the options.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::config_get::SPEC,
        &super::config_help::SPEC,
        &super::config_resetstat::SPEC,
        &super::config_rewrite::SPEC,
        &super::config_set::SPEC,
    ],
    run: help::container,
};
