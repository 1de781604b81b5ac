//! OBJECT REFCOUNT key: how many references to a value there are; small integers are shared by all
//! keys.

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

/// Whether keys share small integers. They do not where each has a use of its own that decides
/// whether it is evicted.
pub(in crate::commands) fn shares(config: &Config) -> bool {
    config.maxmemory == 0 || !config.maxmemory_policy.heeds_use()
}

/// The references to a value, as a server counts them, where small integers are shared or not.
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
