//! INCRBYFLOAT key increment: adds to a number with a fraction; replies with the sum as text.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, long_double::LongDouble},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "incrbyfloat",
    group: Group::String,
    since: "2.6.0",
    summary: "Adds to a number with a fraction.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let value = match ctx.modify::<Str>(key)? {
        Some(string) => LongDouble::parse(string.bytes()).ok_or(Error::NOT_FLOAT)?,
        None => LongDouble::ZERO,
    };
    let increment = LongDouble::parse(&args[2]).ok_or(Error::NOT_FLOAT)?;
    let sum = value.add(&increment).ok_or(Error::INCREMENT_NOT_FINITE)?;
    let text = Bytes::from(sum.to_string());
    let new = Str::text(&text);
    match ctx.modify_no_touch::<Str>(key)? {
        Some(string) => *string = new,
        None => ctx.put(key, Value::String(new), None),
    }
    ctx.changed(key, Class::String, "incrbyfloat");
    // Propagate the sum, not the increment: replicas must not round.
    ctx.propagate_as(vec![vec!["SET".into(), key.clone(), text.clone(), "KEEPTTL".into()]]);
    Ok(text.into())
}
