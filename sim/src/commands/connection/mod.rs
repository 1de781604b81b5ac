//! Commands about the connection itself.

mod ping;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&ping::SPEC];
