//! XDEL key id [id ...]: deletes entries.

use bytes::Bytes;

use super::ids::id;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xdel",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Deletes entries of a stream.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    if ctx.modify::<Stream>(key)?.is_none() {
        return Ok(Reply::Integer(0));
    }
    let ids = args[2..].iter().map(|word| id(word, 0)).collect::<Result<Vec<_>, _>>()?;
    let Some(stream) = ctx.modify::<Stream>(key)? else { return Ok(Reply::Integer(0)) };
    let deleted = ids.into_iter().filter(|id| stream.log.delete(*id)).count();
    if deleted > 0 {
        ctx.changed_by(deleted, key, Class::Stream, "xdel");
    }
    Ok(deleted.into())
}
