//! XACK key group id [id ...]: acknowledges entries.

use bytes::Bytes;

use super::{groups::find, ids::id};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xack",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Acknowledges entries that were delivered.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // The command looks up the key like a read.
    if ctx.lookup(&args[1], Lookup::NO_TOUCH).is_none() {
        return Ok(Reply::Integer(0));
    }
    let Some((_, group)) = find(ctx, &args[1], &args[2])? else { return Ok(Reply::Integer(0)) };
    let ids = args[3..].iter().map(|word| id(word, 0)).collect::<Result<Vec<_>, _>>()?;
    let acknowledged = ids.into_iter().filter(|id| group.acknowledge(*id).is_some()).count();
    // A change without an event.
    ctx.effects.dirty += acknowledged as u64;
    Ok(acknowledged.into())
}
