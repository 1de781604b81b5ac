//! HINCRBYFLOAT key field increment: adds to a number with a fraction in a field; replies with the
//! sum as text.

use bytes::Bytes;

use super::fields::{Stored, look};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, long_double::LongDouble},
    effect::Class,
    generation::Generation,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hincrbyfloat",
    group: Group::Hash,
    since: "2.6.0",
    summary: "Adds to a number with a fraction in a field of a hash.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, field) = (&args[1], &args[2]);
    let increment = LongDouble::parse(&args[3]).ok_or(Error::NOT_FLOAT)?;
    // 6.2 looks at the key first.
    if !increment.is_finite() && ctx.node.config.generation != Generation::Redis62 {
        return Err(Error::of("ERR value is NaN or Infinity"));
    }
    let rule = ctx.field_rule();
    let hash = ctx.modify::<Hash>(key)?;
    let is_expired = hash.as_ref().is_some_and(|hash| hash.is_expired(field, rule));
    let value = match hash.and_then(|hash| hash.get_by(field, rule)) {
        Some(value) => LongDouble::parse(value).ok_or(Error::of("ERR hash value is not a float"))?,
        None => LongDouble::ZERO,
    };
    let sum = value.add(&increment).ok_or(Error::INCREMENT_NOT_FINITE)?;
    let text = Bytes::from(sum.to_string());
    if is_expired {
        look(ctx, key, field);
    }
    let encodings = ctx.node.config.keyspace.encodings;
    let hash = ctx.modify_or_create::<Hash>(key)?;
    let stored = Stored::new(hash, field, rule);
    hash.set(field, &text, &encodings);
    if stored.was_expired {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    ctx.replied();
    ctx.changed(key, Class::Hash, "hincrbyfloat");
    // Propagate the sum, not the increment: replicas must not round.
    let command = match ctx.node.config.generation {
        Generation::Redis82 => {
            let pair = [field.clone(), text.clone()];
            [&["HSETEX".into(), key.clone(), "KEEPTTL".into(), "FIELDS".into(), "1".into()][..], &pair]
                .concat()
        }
        _ => stored.command(key, field, text.clone()),
    };
    ctx.propagate_as(vec![command]);
    Ok(text.into())
}
