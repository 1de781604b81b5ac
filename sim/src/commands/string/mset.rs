//! MSET key value [key value ...]: sets several keys atomically.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    generation::Generation,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "mset",
    group: Group::String,
    since: "1.0.1",
    summary: "Sets several keys to strings.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: -1, step: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    set_all(ctx, &args[1..], "mset")?;
    Ok(Reply::OK)
}

/// Makes the error for a key without a string.
pub(super) fn unpaired(ctx: &Ctx<'_>, command: &str) -> Error {
    match ctx.node.config.generation {
        Generation::Redis62 => Error::of("ERR wrong number of arguments for MSET"),
        _ => Error::arity(command),
    }
}

/// Sets each key of `pairs` to the following string.
pub(super) fn set_all(ctx: &mut Ctx<'_>, pairs: &[Bytes], command: &str) -> Result<(), Error> {
    let (pairs, rest) = pairs.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(unpaired(ctx, command));
    }
    for [key, value] in pairs {
        ctx.put(key, Value::String(Str::new(value)), None);
        ctx.changed(key, Class::String, "set");
    }
    Ok(())
}
