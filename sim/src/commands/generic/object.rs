//! OBJECT subcommand: inspects a key.

use crate::commands::{Flags, Group, Keys, Spec, help::container};

pub(super) const SPEC: Spec = Spec {
    name: "object",
    group: Group::Generic,
    since: "2.2.3",
    summary: "Looks inside a key.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::object_encoding::SPEC,
        &super::object_freq::SPEC,
        &super::object_help::SPEC,
        &super::object_idletime::SPEC,
        &super::object_refcount::SPEC,
    ],
    run: container,
};
