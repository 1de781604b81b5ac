//! INCRBY key increment: adds to an integer; replies with the sum. A missing key counts as 0, and
//! an expiry stays.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "incrby",
    group: Group::String,
    since: "1.0.0",
    summary: "Adds to an integer.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    add(ctx, &args[1], integer(&args[2])?)
}

/// Adds to the integer under `key`; replies with the sum.
pub(super) fn add(ctx: &mut Ctx<'_>, key: &Bytes, increment: i64) -> Result<Reply, Error> {
    let sum = match ctx.modify::<Str>(key)? {
        Some(string) => {
            let value = string.integer().ok_or(Error::NOT_INTEGER)?;
            let sum = value.checked_add(increment).ok_or(Error::INCREMENT_OVERFLOW)?;
            *string = Str::number(sum);
            sum
        }
        None => {
            ctx.put(key, Value::String(Str::number(increment)), None);
            increment
        }
    };
    ctx.changed(key, Class::String, "incrby");
    Ok(sum.into())
}
