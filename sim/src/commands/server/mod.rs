//! Commands about the server.

mod dbsize;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&dbsize::SPEC];
