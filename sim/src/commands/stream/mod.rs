//! Commands on streams.

mod answering;
mod groups;
mod ids;
mod ranging;
mod reading;
mod trimming;
mod xack;
mod xadd;
mod xautoclaim;
mod xclaim;
mod xdel;
mod xgroup;
mod xgroup_create;
mod xgroup_createconsumer;
mod xgroup_delconsumer;
mod xgroup_destroy;
mod xgroup_help;
mod xgroup_setid;
mod xinfo;
mod xinfo_consumers;
mod xinfo_groups;
mod xinfo_help;
mod xinfo_stream;
mod xlen;
mod xpending;
mod xrange;
mod xread;
mod xreadgroup;
mod xrevrange;
mod xsetid;
mod xtrim;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &xack::SPEC,
    &xadd::SPEC,
    &xautoclaim::SPEC,
    &xclaim::SPEC,
    &xdel::SPEC,
    &xgroup::SPEC,
    &xinfo::SPEC,
    &xlen::SPEC,
    &xpending::SPEC,
    &xrange::SPEC,
    &xread::SPEC,
    &xreadgroup::SPEC,
    &xrevrange::SPEC,
    &xsetid::SPEC,
    &xtrim::SPEC,
];
