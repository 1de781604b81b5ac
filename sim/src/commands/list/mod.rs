//! Commands on lists.

mod blmove;
mod blmpop;
mod blpop;
mod brpop;
mod brpoplpush;
mod ends;
mod lindex;
mod linsert;
mod llen;
mod lmove;
mod lmpop;
mod lpop;
mod lpos;
mod lpush;
mod lpushx;
mod lrange;
mod lrem;
mod lset;
mod ltrim;
mod moving;
mod popping;
mod pushing;
mod rpop;
mod rpoplpush;
mod rpush;
mod rpushx;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &blmove::SPEC,
    &blmpop::SPEC,
    &blpop::SPEC,
    &brpop::SPEC,
    &brpoplpush::SPEC,
    &lindex::SPEC,
    &linsert::SPEC,
    &llen::SPEC,
    &lmove::SPEC,
    &lmpop::SPEC,
    &lpop::SPEC,
    &lpos::SPEC,
    &lpush::SPEC,
    &lpushx::SPEC,
    &lrange::SPEC,
    &lrem::SPEC,
    &lset::SPEC,
    &ltrim::SPEC,
    &rpop::SPEC,
    &rpoplpush::SPEC,
    &rpush::SPEC,
    &rpushx::SPEC,
];
