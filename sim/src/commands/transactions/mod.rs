//! MULTI and its company. What queues is decided in `server/gate.rs`; what breaks a watch, in
//! `server/settle.rs`.

mod discard;
mod exec;
mod multi;
mod unwatch;
mod watch;

pub(crate) use exec::resume_transaction;

use super::Spec;

/// The group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&discard::SPEC, &exec::SPEC, &multi::SPEC, &unwatch::SPEC, &watch::SPEC];
