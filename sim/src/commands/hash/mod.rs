//! Commands on hashes.

mod hget;
mod hset;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&hget::SPEC, &hset::SPEC];
