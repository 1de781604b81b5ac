//! XGROUP subcommand: groups of consumers.

use crate::commands::{Flags, Group, Keys, Spec, help::container};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Creates and changes consumer groups.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::xgroup_create::SPEC,
        &super::xgroup_createconsumer::SPEC,
        &super::xgroup_delconsumer::SPEC,
        &super::xgroup_destroy::SPEC,
        &super::xgroup_help::SPEC,
        &super::xgroup_setid::SPEC,
    ],
    run: container,
};
