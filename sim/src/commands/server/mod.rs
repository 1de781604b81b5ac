//! Commands about the server.

mod dbsize;
mod psync;
mod replconf;
mod replicaof;
mod role;
mod slaveof;
mod sync;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &dbsize::SPEC,
    &psync::SPEC,
    &replconf::SPEC,
    &replicaof::SPEC,
    &role::SPEC,
    &slaveof::SPEC,
    &sync::SPEC,
];
