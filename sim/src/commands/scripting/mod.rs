//! EVAL and its company: what runs a script on this node. The interpreter itself is [`crate::script`].

mod eval;
mod eval_ro;
mod evalsha;
mod evalsha_ro;
mod loan;
mod run;
mod script;
mod script_debug;
mod script_exists;
mod script_flush;
mod script_kill;
mod script_load;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] =
    &[&eval::SPEC, &eval_ro::SPEC, &evalsha::SPEC, &evalsha_ro::SPEC, &script::SPEC];
