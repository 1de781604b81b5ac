//! OBJECT REFCOUNT key: the number of references to a value; all keys share small integers.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    config::Config,
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
    let shares = shares(&ctx.node.config);
    Ok(ctx
        .lookup(&args[2], Lookup::INSPECT)
        .map_or(Reply::Null, |entry| Reply::Integer(references(&entry.value, shares))))
}

/// Returns true if keys share small integers. They do not if eviction depends on the use of each
/// key.
pub(in crate::commands) fn shares(config: &Config) -> bool {
    config.memory.maxmemory == 0 || !config.memory.maxmemory_policy.heeds_use()
}

/// Returns the number of references to a value, like a server that shares small integers or does
/// not.
pub(in crate::commands) fn references(value: &Value, shares: bool) -> i64 {
    match value {
        _ if !shares => 1,
        Value::String(string)
            if string.encoding() == "int" && string.integer().is_some_and(|n| (0..10_000).contains(&n)) =>
        {
            i32::MAX.into()
        }
        _ => 1,
    }
}
