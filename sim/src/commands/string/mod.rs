//! Commands on strings.

mod get;
mod set;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&get::SPEC, &set::SPEC];
