//! Commands that work on keys of any type.

mod del;
mod exists;
mod pexpire;
mod pttl;
mod wait;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&del::SPEC, &exists::SPEC, &pexpire::SPEC, &pttl::SPEC, &wait::SPEC];
