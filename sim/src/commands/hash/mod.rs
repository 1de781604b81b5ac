//! Commands on hashes.

mod field_expiry;
mod field_options;
mod fields;
mod hdel;
mod hexists;
mod hexpire;
mod hexpireat;
mod hexpiretime;
mod hget;
mod hgetall;
mod hgetdel;
mod hgetex;
mod hincrby;
mod hincrbyfloat;
mod hkeys;
mod hlen;
mod hmget;
mod hmset;
mod hpersist;
mod hpexpire;
mod hpexpireat;
mod hpexpiretime;
mod hpttl;
mod hrandfield;
mod hscan;
mod hset;
mod hsetex;
mod hsetnx;
mod hstrlen;
mod httl;
mod hvals;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &hdel::SPEC,
    &hexists::SPEC,
    &hexpire::SPEC,
    &hexpireat::SPEC,
    &hexpiretime::SPEC,
    &hget::SPEC,
    &hgetall::SPEC,
    &hgetdel::SPEC,
    &hgetex::SPEC,
    &hincrby::SPEC,
    &hincrbyfloat::SPEC,
    &hkeys::SPEC,
    &hlen::SPEC,
    &hmget::SPEC,
    &hmset::SPEC,
    &hpersist::SPEC,
    &hpexpire::SPEC,
    &hpexpireat::SPEC,
    &hpexpiretime::SPEC,
    &hpttl::SPEC,
    &hrandfield::SPEC,
    &hscan::SPEC,
    &hset::SPEC,
    &hsetex::SPEC,
    &hsetnx::SPEC,
    &hstrlen::SPEC,
    &httl::SPEC,
    &hvals::SPEC,
];
