//! HSET key field value [field value ...]: sets fields; replies with the number of new fields.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hset",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Sets fields of a hash.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(set_all(ctx, args, "hset")?.into())
}

/// Sets the fields in `args` after the key; returns the number of new fields.
pub(super) fn set_all(ctx: &mut Ctx<'_>, args: &[Bytes], command: &str) -> Result<usize, Error> {
    let (pairs, rest) = args[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Error::arity(command));
    }
    let encodings = ctx.node.config.encodings;
    let hash = ctx.modify_or_create::<Hash>(&args[1])?;
    let new = pairs.iter().filter(|[field, value]| hash.set(field, value, &encodings)).count();
    ctx.replied();
    ctx.changed_by(pairs.len(), &args[1], Class::Hash, "hset");
    Ok(new)
}
