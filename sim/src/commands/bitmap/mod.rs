//! Commands on strings as arrays of bits.

mod bitcount;
mod bitfield;
mod bitfield_ro;
mod bitop;
mod bitpos;
mod bits;
mod field;
mod getbit;
mod range;
mod setbit;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &bitcount::SPEC,
    &bitfield::SPEC,
    &bitfield_ro::SPEC,
    &bitop::SPEC,
    &bitpos::SPEC,
    &getbit::SPEC,
    &setbit::SPEC,
];
