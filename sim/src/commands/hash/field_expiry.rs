//! Shared parts of the HEXPIRE and HTTL families: the conditions, the unit, and the origin of the
//! times.

use bytes::Bytes;

use super::fields::{
    MISMATCH, NO_FIELDS, Unit, drop_past, integers, is, is_valkey, redis_fields, valkey_fields, valkey_place,
    when_ms, with_fields, word_fields,
};
use crate::{
    commands::{Ctx, Error, conditions::Conditions, integer},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

/// The arguments of a command of the HEXPIRE family.
struct Parsed<'a> {
    when_ms: i64,
    conditions: Conditions,
    /// The conditions as words.
    words: &'a [Bytes],
    fields: &'a [Bytes],
}

/// Redis takes one condition, between the time and FIELDS.
fn parse_redis<'a>(
    ctx: &Ctx<'_>,
    args: &'a [Bytes],
    origin_ms: i64,
    unit: Unit,
    command: &str,
) -> Result<Parsed<'a>, Error> {
    let when_ms = when_ms(ctx, &args[2], unit, origin_ms, command)?;
    let mut conditions = Conditions::default();
    let at = if conditions.add(&args[3]) { 4 } else { 3 };
    let Some([word, count, fields @ ..]) = args.get(at..) else { return Err(NO_FIELDS) };
    if !is(word, "fields") {
        return Err(NO_FIELDS);
    }
    let count = integer(count).ok().filter(|count| *count > 0);
    let count = count.ok_or(Error::of("ERR Parameter `numFields` should be greater than 0"))?;
    if usize::try_from(count) != Ok(fields.len()) {
        return Err(MISMATCH);
    }
    Ok(Parsed { when_ms, conditions, words: &args[3..at], fields })
}

/// Valkey takes several conditions, and checks the time last.
fn parse_valkey<'a>(
    ctx: &Ctx<'_>,
    args: &'a [Bytes],
    origin_ms: i64,
    unit: Unit,
    command: &str,
) -> Result<Parsed<'a>, Error> {
    // An unknown condition counts more than missing fields, but not more than a missing FIELDS.
    let at = valkey_place(args, 3, 1).or_else(|missing| {
        let at = word_fields(&args[..args.len() - 1], 3)?;
        Conditions::parse(&args[3..at])?;
        integer(&args[at + 1])?;
        Err(missing)
    })?;
    let words = &args[3..at];
    let conditions = Conditions::parse(words)?;
    let fields = valkey_fields(args, at, 1)?;
    let when_ms = when_ms(ctx, &args[2], unit, origin_ms, command)?;
    Ok(Parsed { when_ms, conditions, words, fields })
}

/// Sets the expiry times of fields of the hash `args[1]` to `args[2]` units after `origin_ms`. A
/// time in the past removes the fields. Replies for each field: -2 if it does not exist, 0 if a
/// condition forbids the time, 1 if the time is set, 2 if the field is removed.
pub(super) fn expire(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    origin_ms: i64,
    unit: Unit,
    command: &str,
) -> Result<Reply, Error> {
    let key = &args[1];
    let is_valkey = is_valkey(ctx);
    let parsed = if is_valkey {
        parse_valkey(ctx, args, origin_ms, unit, command)?
    } else {
        ctx.modify::<Hash>(key)?;
        parse_redis(ctx, args, origin_ms, unit, command)?
    };
    let Parsed { when_ms, conditions, words, fields } = parsed;
    let is_past = ctx.is_past(when_ms);
    // Redis finds a field that has expired and is not removed yet.
    let hides = is_valkey.then(|| ctx.field_rule());
    let Some(hash) = ctx.modify::<Hash>(key)? else { return Ok(integers(fields.iter().map(|_| -2))) };
    if !is_valkey {
        hash.expect_times();
    }
    let mut changed = Vec::new();
    let mut replies = Vec::with_capacity(fields.len());
    for field in fields {
        let is_there = hash.contains(field) && !hides.is_some_and(|rule| hash.is_expired(field, rule));
        replies.push(if !is_there {
            -2
        } else if !conditions.allow(hash.time_of(field), when_ms) {
            0
        } else {
            changed.push(field.clone());
            if is_past {
                hash.remove(field);
                2
            } else {
                hash.set_time(field, when_ms, is_valkey);
                1
            }
        });
    }
    if changed.is_empty() {
        return Ok(integers(replies));
    }
    ctx.effects.dirty += changed.len() as u64;
    ctx.replied();
    if is_past {
        drop_past(ctx, key, &changed);
    } else {
        ctx.raw_db().note_field_time(key, when_ms);
        ctx.touch(key, Class::Hash, "hexpire");
        let command = [&["HPEXPIREAT".into(), key.clone(), when_ms.to_string().into()][..], words].concat();
        ctx.propagate_as(vec![with_fields(command, if is_valkey { fields } else { &changed })]);
    }
    Ok(integers(replies))
}

/// Replies with the time from `origin_ms` to the expiry of each field: -1 for no expiry, -2 for no
/// field.
pub(super) fn left(ctx: &mut Ctx<'_>, args: &[Bytes], origin_ms: i64, unit: Unit) -> Result<Reply, Error> {
    let is_valkey = is_valkey(ctx);
    let fields_of_valkey = if is_valkey { Some(plain_fields(args)?) } else { None };
    let rule = ctx.field_rule();
    let hash = ctx.read::<Hash>(&args[1])?;
    let fields = fields_of_valkey.map_or_else(|| redis_fields(args, 2), Ok)?;
    let left = |field: &Bytes| {
        let Some(hash) = hash.filter(|hash| hash.get_by(field, rule).is_some()) else { return -2 };
        let Some(when_ms) = hash.time_of(field) else { return -1 };
        let left_ms = when_ms.saturating_sub(origin_ms).max(0);
        // Redis rounds seconds up, Valkey to the nearest.
        let more = if is_valkey { 500 } else { 999 };
        if unit == Unit::Seconds { left_ms.saturating_add(more) / 1000 } else { left_ms }
    };
    Ok(integers(fields.iter().map(left)))
}

/// Parses `FIELDS numfields field [field ...]` at `args[2]` for HTTL and its kin, as Valkey does.
fn plain_fields(args: &[Bytes]) -> Result<&[Bytes], Error> {
    let Some([word, count, fields @ ..]) = args.get(2..) else { return Err(Error::SYNTAX) };
    if !is(word, "fields") {
        return Err(Error::SYNTAX);
    }
    let is_right = usize::try_from(integer(count)?) == Ok(fields.len()) && !fields.is_empty();
    if is_right { Ok(fields) } else { Err(Error::SYNTAX) }
}

/// Removes the expiry times of fields. Replies for each field: -2 if it does not exist, -1 if it
/// has no expiry, 1 if its expiry is removed.
pub(super) fn persist(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let fields = if is_valkey(ctx) {
        if !is(&args[2], "fields") {
            return Err(Error::SYNTAX);
        }
        valkey_fields(args, 2, 1)?
    } else {
        ctx.modify::<Hash>(key)?;
        redis_fields(args, 2)?
    };
    let rule = ctx.field_rule();
    let Some(hash) = ctx.modify::<Hash>(key)? else { return Ok(integers(fields.iter().map(|_| -2))) };
    let persist = |field: &Bytes| {
        if hash.get_by(field, rule).is_none() {
            -2
        } else if hash.clear_time(field).is_some() {
            1
        } else {
            -1
        }
    };
    let replies: Vec<i64> = fields.iter().map(persist).collect();
    let changed = replies.iter().filter(|reply| **reply == 1).count();
    if changed > 0 {
        ctx.replied();
        ctx.changed_by(changed, key, Class::Hash, "hpersist");
    }
    Ok(integers(replies))
}
