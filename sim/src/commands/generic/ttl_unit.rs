//! Shared parts of the EXPIRE and TTL families: the unit, and the origin of the times.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Lookup, conditions::Conditions, integer},
    effect::Class,
    generation::Generation,
    resp::Reply,
};

/// Unit of a command's argument or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// Sets the expiry of the key `args[1]` to `args[2]` units after `origin_ms`. A time in the past
/// removes the key.
pub(super) fn expire(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    origin_ms: i64,
    unit: Unit,
    command: &str,
) -> Result<Reply, Error> {
    let key = &args[1];
    let conditions = Conditions::parse(&args[3..])?;
    let when_ms = when(ctx.node.config.generation, integer(&args[2])?, origin_ms, unit);
    let when_ms = when_ms.ok_or_else(|| Error::invalid_expire(command))?;
    let Some(old_ms) = ctx.lookup_write(key).map(|entry| entry.expires_ms()) else {
        return Ok(Reply::Integer(0));
    };
    if !conditions.allow(old_ms, when_ms) {
        return Ok(Reply::Integer(0));
    }
    if ctx.is_past(when_ms) {
        ctx.remove_past(key);
    } else {
        ctx.set_expiry(key, Some(when_ms));
        ctx.replied();
        ctx.changed(key, Class::Expiry, "expire");
        ctx.propagate_as(vec![vec!["PEXPIREAT".into(), key.clone(), when_ms.to_string().into()]]);
    }
    Ok(Reply::Integer(1))
}

/// Returns the time in milliseconds; from Redis 7.0 on `None` beyond 64 bits. Redis 6.2 calculates
/// with the lower 64 bits. It refuses a negative argument whose result is after the origin, and
/// any other whose result is below zero.
fn when(generation: Generation, argument: i64, origin_ms: i64, unit: Unit) -> Option<i64> {
    let scale = if unit == Unit::Seconds { 1000 } else { 1 };
    if generation != Generation::Redis62 {
        return argument.checked_mul(scale)?.checked_add(origin_ms);
    }
    let after_ms = argument.wrapping_mul(scale);
    let when_ms = after_ms.wrapping_add(origin_ms);
    let is_wrong = if argument < 0 { after_ms > 0 } else { when_ms < 0 };
    (!is_wrong).then_some(when_ms)
}

/// Replies with the time from `origin_ms` to a key's expiry: -1 for no expiry, -2 for no key.
pub(super) fn left(ctx: &mut Ctx<'_>, key: &[u8], origin_ms: i64, unit: Unit) -> Reply {
    Reply::Integer(match ctx.lookup(key, Lookup::NO_TOUCH).map(|entry| entry.expires_ms()) {
        None => -2,
        Some(None) => -1,
        Some(Some(when_ms)) => {
            let left_ms = when_ms.saturating_sub(origin_ms).max(0);
            // Round seconds to the nearest, so that a key just set to 10 s has 10 left.
            if unit == Unit::Seconds { left_ms.saturating_add(500) / 1000 } else { left_ms }
        }
    })
}
