//! Commands about the server.

mod bgrewriteaof;
mod bgsave;
mod dbsize;
mod lastsave;
mod psync;
mod replconf;
mod replicaof;
mod role;
mod save;
mod slaveof;
mod sync;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &bgrewriteaof::SPEC,
    &bgsave::SPEC,
    &dbsize::SPEC,
    &lastsave::SPEC,
    &psync::SPEC,
    &replconf::SPEC,
    &replicaof::SPEC,
    &role::SPEC,
    &save::SPEC,
    &slaveof::SPEC,
    &sync::SPEC,
];
