//! XINFO subcommand: describes streams, groups and consumers.

use crate::commands::{Flags, Group, Keys, Spec, help::container};

pub(super) const SPEC: Spec = Spec {
    name: "xinfo",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes streams and their groups.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::xinfo_consumers::SPEC,
        &super::xinfo_groups::SPEC,
        &super::xinfo_help::SPEC,
        &super::xinfo_stream::SPEC,
    ],
    run: container,
};
