//! OBJECT REFCOUNT key: how many references to a value there are; small integers are shared by everybody.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Value,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "object|refcount",
    group: Group::Generic,
    since: "2.2.3",
    summary: "The references to the value of a key.",
    arity: 3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.inspect(&args[2]).map_or(Reply::Null, |entry| Reply::Integer(references(&entry.value))))
}

/// The references to a value, as a server counts them.
pub(in crate::commands) fn references(value: &Value) -> i64 {
    match value {
        Value::String(string)
            if string.encoding() == "int" && string.integer().is_some_and(|n| (0..10_000).contains(&n)) =>
        {
            i32::MAX.into()
        }
        _ => 1,
    }
}
