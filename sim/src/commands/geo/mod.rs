//! Commands on places: members of a sorted set whose scores are cells of a grid over the earth.

mod earth;
mod geoadd;
mod geodist;
mod geohash;
mod geopos;
mod georadius;
mod georadius_ro;
mod georadiusbymember;
mod georadiusbymember_ro;
mod geosearch;
mod geosearchstore;
mod grid;
mod query;
mod searching;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &geoadd::SPEC,
    &geodist::SPEC,
    &geohash::SPEC,
    &geopos::SPEC,
    &georadius::SPEC,
    &georadius_ro::SPEC,
    &georadiusbymember::SPEC,
    &georadiusbymember_ro::SPEC,
    &geosearch::SPEC,
    &geosearchstore::SPEC,
];
