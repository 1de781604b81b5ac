//! SUBSTR key start end: the old name of GETRANGE.

use super::getrange::run;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "substr",
    group: Group::String,
    since: "1.0.0",
    summary: "A part of a string (the old name of GETRANGE).",
    arity: 4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};
