//! MULTI and the related commands. `server/gate.rs` decides which commands are queued, and
//! `server/settle.rs` which changes break a watch.

mod discard;
mod exec;
mod multi;
mod unwatch;
mod watch;

pub(crate) use exec::resume_transaction;

use super::{Ctx, Error, Spec};
use crate::generation::{Feature, Generation};

/// Makes the error for a command that is not allowed in a transaction. Valkey aborts the
/// transaction.
fn refused(ctx: &mut Ctx<'_>, command: &str, redis: &'static str) -> Error {
    let generation = ctx.node.config.generation;
    if !generation.has(Feature::StrictTransactions) {
        return Error::of(redis);
    }
    if let Some(transaction) = &mut ctx.session().transaction {
        transaction.broken = true;
    }
    match generation {
        Generation::Valkey81 => Error::of("ERR Command not allowed inside a transaction"),
        _ => Error(format!("ERR Command '{command}' not allowed inside a transaction").into()),
    }
}

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[&discard::SPEC, &exec::SPEC, &multi::SPEC, &unwatch::SPEC, &watch::SPEC];
