//! SCRIPT: the container of the commands about scripts.

use super::{script_debug, script_exists, script_flush, script_help, script_kill, script_load, script_show};
use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "script",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Commands about scripts.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &script_debug::SPEC,
        &script_exists::SPEC,
        &script_flush::SPEC,
        &script_help::SPEC,
        &script_kill::SPEC,
        &script_load::SPEC,
        &script_show::SPEC,
    ],
    run: help::container,
};
