//! MODULE subcommand ...: modules, which this node does not support.

use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "module",
    group: Group::Server,
    since: "4.0.0",
    summary: "Commands about modules.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::module_help::SPEC,
        &super::module_list::SPEC,
        &super::module_load::SPEC,
        &super::module_loadex::SPEC,
        &super::module_unload::SPEC,
    ],
    run: help::container,
};
