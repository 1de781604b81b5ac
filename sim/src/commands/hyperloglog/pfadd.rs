//! PFADD key [element ...]: adds elements to a HyperLogLog; replies with 1 if its estimate may have
//! changed.

use bytes::Bytes;

use super::sketch;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pfadd",
    group: Group::HyperLogLog,
    since: "2.8.9",
    summary: "Adds elements to a HyperLogLog.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, sparse_max) = (&args[1], ctx.node.config.keyspace.encodings.hyperloglog_sparse_max);
    let found = ctx.modify::<Str>(key)?;
    let is_new = found.is_none();
    found.map_or(Ok(()), |string| sketch::check(string.bytes()))?;
    if is_new {
        ctx.modify_or_create::<Str>(key)?;
    }
    let Some(string) = ctx.modify_no_touch::<Str>(key)? else { return Ok(Reply::Integer(0)) };
    let changes = string.edit(|bytes| {
        let mut changes = 0;
        if is_new {
            sketch::begin(bytes);
            changes += 1;
        }
        for element in &args[2..] {
            changes += usize::from(sketch::add(bytes, element, sparse_max)?);
        }
        if changes > 0 {
            sketch::invalidate(bytes);
        }
        Ok::<usize, Error>(changes)
    })?;
    if changes > 0 {
        ctx.changed_by(changes, key, Class::String, "pfadd");
    }
    Ok((changes > 0).into())
}
