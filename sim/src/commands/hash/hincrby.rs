//! HINCRBY key field increment: adds to an integer in a field; replies with the sum. A missing
//! field counts as 0.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hincrby",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Adds to an integer in a field of a hash.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, field, increment) = (&args[1], &args[2], integer(&args[3])?);
    let value = match ctx.modify::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => integer(value).map_err(|_| Error::of("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = value.checked_add(increment).ok_or(Error::INCREMENT_OVERFLOW)?;
    let encodings = ctx.node.config.encodings;
    ctx.modify_or_create::<Hash>(key)?.set(field, Blob::integer(sum), &encodings);
    ctx.replied();
    ctx.changed(key, Class::Hash, "hincrby");
    Ok(sum.into())
}
