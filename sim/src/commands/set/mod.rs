//! Commands on sets.

mod combining;
mod sadd;
mod scard;
mod sdiff;
mod sdiffstore;
mod sinter;
mod sintercard;
mod sinterstore;
mod sismember;
mod smembers;
mod smismember;
mod smove;
mod spop;
mod srandmember;
mod srem;
mod sscan;
mod sunion;
mod sunionstore;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &sadd::SPEC,
    &scard::SPEC,
    &sdiff::SPEC,
    &sdiffstore::SPEC,
    &sinter::SPEC,
    &sintercard::SPEC,
    &sinterstore::SPEC,
    &sismember::SPEC,
    &smembers::SPEC,
    &smismember::SPEC,
    &smove::SPEC,
    &spop::SPEC,
    &srandmember::SPEC,
    &srem::SPEC,
    &sscan::SPEC,
    &sunion::SPEC,
    &sunionstore::SPEC,
];
