//! Commands of publish/subscribe.

mod publish;
mod subscribe;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&publish::SPEC, &subscribe::SPEC];
