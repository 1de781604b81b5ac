//! EVAL and the related commands: they run scripts on this node. The interpreter is in
//! [`crate::script`].

mod declared;
mod eval;
mod eval_ro;
mod evalsha;
mod evalsha_ro;
mod fcall;
mod fcall_ro;
mod function;
mod function_delete;
mod function_dump;
mod function_flush;
mod function_help;
mod function_kill;
mod function_list;
mod function_load;
mod function_restore;
mod function_stats;
mod kill;
mod libraries;
mod borrowed_node;
mod run;
mod script;
mod script_debug;
mod script_exists;
mod script_flush;
mod script_help;
mod script_kill;
mod script_load;
mod script_show;

pub use declared::declared;
pub(crate) use run::next_turn;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &eval::SPEC,
    &eval_ro::SPEC,
    &evalsha::SPEC,
    &evalsha_ro::SPEC,
    &fcall::SPEC,
    &fcall_ro::SPEC,
    &function::SPEC,
    &script::SPEC,
];
