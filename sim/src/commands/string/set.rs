//! SET key value [NX | XX | IFEQ value] [GET] [EX seconds | PX ms | EXAT seconds | PXAT ms |
//! KEEPTTL]: sets a key to a string.

use bytes::Bytes;

use super::options::{Of, SetOptions};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "set",
    group: Group::String,
    since: "1.0.0",
    summary: "Sets a key to a string.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = SetOptions::parse(&args[3..], Of::Set, ctx.node.config.generation)?;
    let when_ms = options.expiry.as_ref().map(|expiry| expiry.when_ms(ctx.wall_ms(), "set")).transpose()?;
    let key = &args[1];
    let old = if options.get { ctx.read::<Str>(key)?.map(|string| string.bytes().apart()) } else { None };
    // A value of another type is an error, as with GET.
    let is_equal = match &options.if_equal {
        None => true,
        Some(wanted) => ctx.equals(key, wanted)?,
    };
    let answer = |otherwise| if options.get { old.into() } else { otherwise };
    if !is_equal {
        return Ok(answer(Reply::Null));
    }
    if options.only_if_exists.is_some_and(|wanted| wanted != ctx.lookup(key, Lookup::PASSIVE).is_some()) {
        ctx.lookup_write(key);
        return Ok(answer(Reply::Null));
    }
    let kept_ms = if options.keep_ttl {
        ctx.lookup(key, Lookup::PASSIVE).and_then(|entry| entry.expires_ms())
    } else {
        None
    };
    if options.get {
        ctx.replied();
    }
    if ctx.node.config.generation.is_valkey() && when_ms.is_some_and(|when_ms| ctx.is_past(when_ms)) {
        if ctx.lookup_write(key).is_some() {
            ctx.remove_past(key);
        }
        return Ok(answer(Reply::OK));
    }
    write(ctx, key, &args[2], when_ms.or(kept_ms), when_ms.is_some());
    if options.get && when_ms.is_none() {
        // Replicas send no reply, so GET is not propagated.
        let words =
            args.iter().enumerate().filter(|(at, word)| *at < 3 || !word.eq_ignore_ascii_case(b"get"));
        ctx.propagate_as(vec![words.map(|(_, word)| word.clone()).collect()]);
    }
    Ok(answer(Reply::OK))
}

/// Sets a key to a string that expires at `expires_ms`. `anew` is true if the command gave that
/// time itself.
pub(super) fn write(ctx: &mut Ctx<'_>, key: &Bytes, value: &Bytes, expires_ms: Option<i64>, anew: bool) {
    ctx.put(key, Value::String(Str::new(value)), expires_ms);
    ctx.changed(key, Class::String, "set");
    if let Some(when_ms) = expires_ms.filter(|_| anew) {
        ctx.touch(key, Class::Expiry, "expire");
        let when = Bytes::from(when_ms.to_string());
        ctx.propagate_as(vec![vec!["SET".into(), key.clone(), value.clone(), "PXAT".into(), when]]);
    }
}
