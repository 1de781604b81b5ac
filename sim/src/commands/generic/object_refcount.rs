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
    Ok(match ctx.peek(&args[2]).map(|entry| &entry.value) {
        None => Reply::Null,
        Some(Value::String(string))
            if string.encoding() == "int" && string.integer().is_some_and(|n| (0..10_000).contains(&n)) =>
        {
            Reply::Integer(i32::MAX.into())
        }
        Some(_) => Reply::Integer(1),
    })
}
