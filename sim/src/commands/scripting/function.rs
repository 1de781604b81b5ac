//! FUNCTION: the container of the commands about libraries of functions.

use super::{
    function_delete, function_dump, function_flush, function_help, function_kill, function_list,
    function_load, function_restore, function_stats,
};
use crate::commands::{Flags, Group, Keys, Spec, help};

pub(super) const SPEC: Spec = Spec {
    name: "function",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Commands about functions.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &function_delete::SPEC,
        &function_dump::SPEC,
        &function_flush::SPEC,
        &function_help::SPEC,
        &function_kill::SPEC,
        &function_list::SPEC,
        &function_load::SPEC,
        &function_restore::SPEC,
        &function_stats::SPEC,
    ],
    run: help::container,
};
