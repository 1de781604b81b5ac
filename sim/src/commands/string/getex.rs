//! GETEX key [EX seconds | PX ms | EXAT seconds | PXAT ms | PERSIST]: returns the string of a key,
//! and changes its expiry.

use bytes::Bytes;

use super::options::{Of, SetOptions};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    effect::Class,
    generation::Generation,
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "getex",
    group: Group::String,
    since: "6.2.0",
    summary: "The string value of a key, whose expiry is set or cleared.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = SetOptions::parse(&args[2..], Of::Getex, ctx.node.config.generation)?;
    let key = &args[1];
    // Valkey 9 checks the time first.
    if ctx.node.config.generation == Generation::Valkey91
        && let Some(expiry) = &options.expiry
    {
        expiry.when_ms(ctx.wall_ms(), "getex")?;
    }
    let Some(value) = ctx.read::<Str>(key)?.map(|string| string.bytes().apart()) else {
        return Ok(Reply::Null);
    };
    ctx.replied();
    if let Some(expiry) = &options.expiry {
        let when_ms = expiry.when_ms(ctx.wall_ms(), "getex")?;
        if expiry.is_absolute() && ctx.is_past(when_ms) {
            ctx.remove_past(key);
        } else {
            ctx.set_expiry(key, Some(when_ms));
            ctx.changed(key, Class::Expiry, "expire");
            ctx.propagate_as(vec![vec!["PEXPIREAT".into(), key.clone(), when_ms.to_string().into()]]);
        }
    } else if options.persist
        && ctx.lookup(key, Lookup::PASSIVE).is_some_and(|entry| entry.expires_ms().is_some())
    {
        ctx.set_expiry(key, None);
        ctx.changed(key, Class::Generic, "persist");
        ctx.propagate_as(vec![vec!["PERSIST".into(), key.clone()]]);
    }
    Ok(value.into())
}
