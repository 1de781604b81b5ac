//! HINCRBY key field increment: adds to an integer in a field; replies with the sum. A missing
//! field counts as 0.

use bytes::Bytes;

use super::fields::{Stored, is_valkey, look};
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
    let rule = ctx.field_rule();
    let hash = ctx.modify::<Hash>(key)?;
    let is_expired = hash.as_ref().is_some_and(|hash| hash.is_expired(field, rule));
    let value = match hash.and_then(|hash| hash.get_by(field, rule)) {
        Some(value) => integer(value).map_err(|_| Error::of("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = value.checked_add(increment).ok_or(Error::INCREMENT_OVERFLOW)?;
    if is_expired {
        look(ctx, key, field);
    }
    let encodings = ctx.node.config.keyspace.encodings;
    let hash = ctx.modify_or_create::<Hash>(key)?;
    let stored = Stored::new(hash, field, rule);
    hash.set(field, Blob::integer(sum), &encodings);
    if stored.was_expired {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    ctx.replied();
    ctx.changed(key, Class::Hash, "hincrby");
    if is_valkey(ctx) && stored.has_times {
        ctx.propagate_as(vec![stored.command(key, field, sum.to_string().into())]);
    }
    Ok(sum.into())
}
