//! Commands on hashes.

mod hdel;
mod hexists;
mod hget;
mod hgetall;
mod hincrby;
mod hincrbyfloat;
mod hkeys;
mod hlen;
mod hmget;
mod hmset;
mod hrandfield;
mod hscan;
mod hset;
mod hsetnx;
mod hstrlen;
mod hvals;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &hdel::SPEC,
    &hexists::SPEC,
    &hget::SPEC,
    &hgetall::SPEC,
    &hincrby::SPEC,
    &hincrbyfloat::SPEC,
    &hkeys::SPEC,
    &hlen::SPEC,
    &hmget::SPEC,
    &hmset::SPEC,
    &hrandfield::SPEC,
    &hscan::SPEC,
    &hset::SPEC,
    &hsetnx::SPEC,
    &hstrlen::SPEC,
    &hvals::SPEC,
];
