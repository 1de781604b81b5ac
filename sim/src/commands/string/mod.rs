//! Commands on strings.

mod append;
mod decr;
mod decrby;
mod delifeq;
mod get;
mod getdel;
mod getex;
mod getrange;
mod getset;
mod incr;
mod incrby;
mod incrbyfloat;
mod lcs;
mod mget;
mod mset;
mod msetex;
mod msetnx;
mod options;
mod psetex;
mod set;
mod setex;
mod setnx;
mod setrange;
mod strlen;
mod substr;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &append::SPEC,
    &decr::SPEC,
    &decrby::SPEC,
    &delifeq::SPEC,
    &get::SPEC,
    &getdel::SPEC,
    &getex::SPEC,
    &getrange::SPEC,
    &getset::SPEC,
    &incr::SPEC,
    &incrby::SPEC,
    &incrbyfloat::SPEC,
    &lcs::SPEC,
    &mget::SPEC,
    &mset::SPEC,
    &msetex::SPEC,
    &msetnx::SPEC,
    &psetex::SPEC,
    &set::SPEC,
    &setex::SPEC,
    &setnx::SPEC,
    &setrange::SPEC,
    &strlen::SPEC,
    &substr::SPEC,
];
