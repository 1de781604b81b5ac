//! Commands that estimate the number of different elements.

mod dense;
mod estimate;
mod murmur;
mod pfadd;
mod pfcount;
mod pfdebug;
mod pfmerge;
mod pfselftest;
mod registers;
mod sketch;
mod sparse;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] =
    &[&pfadd::SPEC, &pfcount::SPEC, &pfdebug::SPEC, &pfmerge::SPEC, &pfselftest::SPEC];
