//! MULTI and its company. What queues and what runs is the server's: see `server/gate.rs` and `server/transaction.rs`.

mod exec;
mod multi;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&exec::SPEC, &multi::SPEC];
