//! MULTI and the related commands. `server/gate.rs` decides which commands are queued, and
//! `server/settle.rs` which changes break a watch.

mod discard;
mod exec;
mod multi;
mod unwatch;
mod watch;

pub(crate) use exec::resume_transaction;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&discard::SPEC, &exec::SPEC, &multi::SPEC, &unwatch::SPEC, &watch::SPEC];
