//! Commands that work on keys of any type.

mod copy;
mod del;
mod dump;
mod exists;
mod expire;
mod expireat;
mod expiretime;
mod ttl_unit;
mod keys;
mod migrate;
mod r#move;
mod object;
mod object_encoding;
mod object_freq;
mod object_help;
mod object_idletime;
mod object_refcount;
mod persist;
mod pexpire;
mod pexpireat;
mod pexpiretime;
mod pttl;
mod randomkey;
mod rename;
mod renamenx;
mod restore;
mod restoring;
mod scan;
mod sort;
mod sort_ro;
mod sorting;
mod touch;
mod ttl;
mod r#type;
mod unlink;
mod wait;
mod waitaof;

use super::Spec;

pub(super) use object_refcount::{references, shares};
pub(super) use restoring::restore as run_restore;

pub(super) const ALL: &[&Spec] = &[
    &copy::SPEC,
    &del::SPEC,
    &dump::SPEC,
    &exists::SPEC,
    &expire::SPEC,
    &expireat::SPEC,
    &expiretime::SPEC,
    &keys::SPEC,
    &migrate::SPEC,
    &r#move::SPEC,
    &object::SPEC,
    &persist::SPEC,
    &pexpire::SPEC,
    &pexpireat::SPEC,
    &pexpiretime::SPEC,
    &pttl::SPEC,
    &randomkey::SPEC,
    &rename::SPEC,
    &renamenx::SPEC,
    &restore::SPEC,
    &scan::SPEC,
    &sort::SPEC,
    &sort_ro::SPEC,
    &touch::SPEC,
    &ttl::SPEC,
    &r#type::SPEC,
    &unlink::SPEC,
    &wait::SPEC,
    &waitaof::SPEC,
];
