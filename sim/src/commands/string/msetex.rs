//! MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX ms | EXAT seconds | PXAT
//! ms | KEEPTTL]: sets several keys atomically, with one expiry, if all or none of them exist.

use bytes::Bytes;

use super::options::{Of, SetOptions};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec, integer},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "msetex",
    group: Group::String,
    since: "valkey 9.1.0",
    summary: "Sets several keys to strings with one expiry.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Found(keys),
    subcommands: &[],
    run,
};

/// Returns the number of keys and values.
fn len(args: &[Bytes]) -> Option<usize> {
    let count = integer(args.get(1)?).ok().filter(|count| (1..=i64::from(i32::MAX)).contains(count))?;
    usize::try_from(count).ok()?.checked_mul(2)
}

/// Returns the indices of the keys.
fn keys(args: &[Bytes]) -> Vec<usize> {
    let end = len(args).and_then(|len| len.checked_add(2)).filter(|end| *end <= args.len());
    end.map_or_else(Vec::new, |end| (2..end).step_by(2).collect())
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let len = len(args).ok_or(Error::of("ERR invalid numkeys value or out of range"))?;
    let Some((pairs, options)) = args[2..].split_at_checked(len) else { return Err(Error::SYNTAX) };
    let options = SetOptions::parse(options, Of::Set, ctx.node.config.generation)?;
    if options.get || options.if_equal.is_some() {
        return Err(Error::SYNTAX);
    }
    let when_ms =
        options.expiry.as_ref().map(|expiry| expiry.when_ms(ctx.wall_ms(), "msetex")).transpose()?;
    let (pairs, _) = pairs.as_chunks::<2>();
    if let Some(wanted) = options.only_if_exists
        && pairs.iter().any(|[key, _]| ctx.exists_for_write(key) != wanted)
    {
        return Ok(Reply::Integer(0));
    }
    for [key, value] in pairs {
        let kept_ms = match options.keep_ttl {
            true => ctx.lookup(key, Lookup::PASSIVE).and_then(|entry| entry.expires_ms()),
            false => None,
        };
        ctx.put(key, Value::String(Str::new(value)), when_ms.or(kept_ms));
        ctx.changed(key, Class::String, "set");
        if when_ms.is_some() {
            ctx.touch(key, Class::Expiry, "expire");
        }
    }
    if let Some(when_ms) = when_ms {
        // A replica must not count from the time at which it gets the command.
        let mut command: Vec<Bytes> = args[..2 + len].to_vec();
        let condition = options.only_if_exists.map(|exists| if exists { "XX" } else { "NX" });
        command.extend(condition.map(Bytes::from));
        command.extend(["PXAT".into(), Bytes::from(when_ms.to_string())]);
        ctx.propagate_as(vec![command]);
    }
    Ok(Reply::Integer(1))
}
