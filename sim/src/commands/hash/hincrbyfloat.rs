//! HINCRBYFLOAT key field increment: adds to a number with a fraction in a field; replies with the
//! sum as text.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, long_double::LongDouble},
    effect::Class,
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
    if !increment.is_finite() {
        return Err(Error::of("ERR value is NaN or Infinity"));
    }
    let value = match ctx.modify::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => LongDouble::parse(value).ok_or(Error::of("ERR hash value is not a float"))?,
        None => LongDouble::ZERO,
    };
    let sum = value.add(&increment).ok_or(Error::INCREMENT_NOT_FINITE)?;
    let text = Bytes::from(sum.to_string());
    let encodings = ctx.node.config.encodings;
    ctx.modify_or_create::<Hash>(key)?.set(field, &text, &encodings);
    ctx.replied();
    ctx.changed(key, Class::Hash, "hincrbyfloat");
    // Propagate the sum, not the increment: replicas must not round.
    ctx.propagate_as(vec![vec!["HSET".into(), key.clone(), field.clone(), text.clone()]]);
    Ok(text.into())
}
