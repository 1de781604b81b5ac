//! Fields with a time to live: shared parts of the commands on hashes.
//!
//! The two servers differ about an expired field that is not removed yet. Redis removes it when a
//! command looks at it. In Valkey only the periodic work does; until then the field is hidden.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Origin, integer},
    effect::{Class, PropagateTo, Propagated},
    keyspace::{ExpiryRule, Hash},
    node::active_expiry::Purpose,
    resp::Reply,
};

/// The error of Valkey for a wrong number of fields.
pub(super) const COUNT: Error =
    Error::of("ERR numfields should be greater than 0 and match the provided number of fields");
/// The errors of Redis for a wrong number of fields, and for a missing word FIELDS.
pub(super) const MISMATCH: Error =
    Error::of("ERR The `numfields` parameter must match the number of arguments");
const NOT_POSITIVE: Error = Error::of("ERR Number of fields must be a positive integer");
pub(super) const NO_FIELDS: Error =
    Error::of("ERR Mandatory argument FIELDS is missing or not at the right position");
const NEGATIVE: Error = Error::of("ERR invalid expire time, must be >= 0");

/// The latest time in milliseconds that Redis stores for a field.
const REDIS_MAX_MS: i64 = (1 << 46) - 1;

/// The unit of a time of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// Returns true if the node imitates Valkey.
pub(super) fn is_valkey(ctx: &Ctx<'_>) -> bool {
    ctx.node.config.generation.is_valkey()
}

/// Returns true if a word of a command is this option.
pub(super) fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

/// Parses the expiry time of a field, which is `origin_ms` later than the number.
pub(super) fn when_ms(
    ctx: &Ctx<'_>,
    number: &[u8],
    unit: Unit,
    origin_ms: i64,
    command: &str,
) -> Result<i64, Error> {
    let number = integer(number)?;
    if number < 0 {
        return Err(if is_valkey(ctx) { Error::invalid_expire(command) } else { NEGATIVE });
    }
    let max_ms = if is_valkey(ctx) { i64::MAX } else { REDIS_MAX_MS };
    let scale = if unit == Unit::Seconds { 1000 } else { 1 };
    let when_ms = number.checked_mul(scale).and_then(|ms| ms.checked_add(origin_ms));
    when_ms.filter(|when_ms| *when_ms <= max_ms).ok_or_else(|| Error::invalid_expire(command))
}

/// Parses `FIELDS numfields field [field ...]`, which begins at `args[at]` and ends the command, as
/// Redis does for most commands.
pub(super) fn redis_fields(args: &[Bytes], at: usize) -> Result<&[Bytes], Error> {
    let Some([word, count, fields @ ..]) = args.get(at..) else { return Err(NO_FIELDS) };
    if !is(word, "fields") {
        return Err(NO_FIELDS);
    }
    let count = integer(count).ok().filter(|count| *count > 0).ok_or(NOT_POSITIVE)?;
    if usize::try_from(count) == Ok(fields.len()) { Ok(fields) } else { Err(MISMATCH) }
}

/// Returns the index of the word FIELDS behind options, as Valkey finds it. Each field has `width`
/// arguments, and at least one field follows.
pub(super) fn valkey_place(args: &[Bytes], from: usize, width: usize) -> Result<usize, Error> {
    let end = args.len().saturating_sub(1 + width);
    (from..end).find(|at| is(&args[*at], "fields")).ok_or(COUNT)
}

/// Returns the index of the word FIELDS, even if no field follows.
pub(super) fn word_fields(args: &[Bytes], from: usize) -> Result<usize, Error> {
    (from..args.len()).find(|at| is(&args[*at], "fields")).ok_or(COUNT)
}

/// Parses the number of fields behind the word FIELDS at `args[at]`, as Valkey does; returns the
/// arguments behind it.
pub(super) fn valkey_fields(args: &[Bytes], at: usize, width: usize) -> Result<&[Bytes], Error> {
    let (count, fields) = (integer(&args[at + 1])?, &args[at + 2..]);
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let len = count.and_then(|count| count.checked_mul(width));
    if len == Some(fields.len()) { Ok(fields) } else { Err(COUNT) }
}

/// Returns true if a lookup removes an expired field of a hash.
fn removes_expired(ctx: &Ctx<'_>) -> bool {
    !is_valkey(ctx) && ctx.origin != Origin::Replication && ctx.node.deletes_expired(Purpose::Read)
}

/// Removes those of the fields that have expired, if a lookup does so; returns their number. It
/// reports no event, and the hash may be empty afterwards.
pub(super) fn remove_expired(ctx: &mut Ctx<'_>, key: &Bytes, fields: &[Bytes]) -> usize {
    let rule = ctx.field_rule();
    if !removes_expired(ctx) {
        return 0;
    }
    let db = ctx.db;
    let Ok(Some(hash)) = ctx.raw_db().typed_mut::<Hash>(key) else { return 0 };
    let mut gone = Vec::new();
    for field in fields {
        if hash.is_expired(field, rule) && hash.remove(field).is_some() {
            gone.push(field.clone());
        }
    }
    let count = gone.len();
    let propagated = gone.into_iter().map(|field| Propagated {
        db,
        args: vec!["HDEL".into(), key.clone(), field],
        to: PropagateTo::All,
    });
    ctx.effects.propagated.extend(propagated);
    count
}

/// Removes the field, of which a lookup has found that it has expired, and a hash without fields.
pub(super) fn look(ctx: &mut Ctx<'_>, key: &Bytes, field: &Bytes) {
    if remove_expired(ctx, key, std::slice::from_ref(field)) > 0 {
        ctx.touch(key, Class::Hash, "hexpired");
        ctx.drop_if_empty(key);
    }
}

/// Removes all expired fields of a hash, if a lookup does so.
pub(super) fn sweep(ctx: &mut Ctx<'_>, key: &Bytes) {
    if removes_expired(ctx) {
        let rule = ctx.field_rule();
        ctx.node.expire_fields(ctx.effects, ctx.db, key, rule);
    }
}

/// Sets the expiry time of a field of the hash at a key.
pub(super) fn set_time(ctx: &mut Ctx<'_>, key: &Bytes, field: &Bytes, when_ms: i64) {
    let as_table = is_valkey(ctx);
    let db = ctx.raw_db();
    if let Ok(Some(hash)) = db.typed_mut::<Hash>(key) {
        hash.set_time(field, when_ms, as_table);
        db.note_field_time(key, when_ms);
    }
}

/// Removes fields whose new time is in the past, with the events of the server. `old` are those
/// that existed.
pub(super) fn drop_past(ctx: &mut Ctx<'_>, key: &Bytes, old: &[Bytes]) {
    let event = if is_valkey(ctx) { "hexpired" } else { "hdel" };
    ctx.touch(key, Class::Hash, event);
    ctx.drop_if_empty(key);
    let chunk = if is_valkey(ctx) { old.len().max(1) } else { 1 };
    let commands = old.chunks(chunk).map(|fields| [&["HDEL".into(), key.clone()][..], fields].concat());
    let commands = commands.collect();
    ctx.propagate_as(commands);
}

/// Returns a command with `FIELDS`, the number of the fields, and the fields.
pub(super) fn with_fields(mut command: Vec<Bytes>, fields: &[Bytes]) -> Vec<Bytes> {
    command.push("FIELDS".into());
    command.push(fields.len().to_string().into());
    command.extend_from_slice(fields);
    command
}

/// Returns the expiry time of a field that is about to get a new value and to keep its expiry.
pub(super) struct Stored {
    /// The hash has fields with a time to live.
    pub(super) has_times: bool,
    /// The field had expired, and its new value has no time.
    pub(super) was_expired: bool,
    time_ms: Option<i64>,
}

impl Stored {
    /// Looks at the field, and removes its time if it is past.
    pub(super) fn new(hash: &mut Hash, field: &Bytes, rule: ExpiryRule) -> Stored {
        let has_times = hash.has_times();
        let was_expired = hash.is_expired(field, rule);
        if was_expired {
            hash.clear_time(field);
        }
        Stored { has_times, was_expired, time_ms: hash.time_of(field) }
    }

    /// Returns the command that stores the new value with the time, as Valkey propagates it.
    pub(super) fn command(&self, key: &Bytes, field: &Bytes, value: Bytes) -> Vec<Bytes> {
        match self.time_ms {
            None => vec!["HSET".into(), key.clone(), field.clone(), value],
            Some(when_ms) => {
                let when = Bytes::from(when_ms.to_string());
                let head =
                    vec!["HSETEX".into(), key.clone(), "PXAT".into(), when, "FIELDS".into(), "1".into()];
                [head, vec![field.clone(), value]].concat()
            }
        }
    }
}

/// Replies with an integer for each field.
pub(super) fn integers(numbers: impl IntoIterator<Item = i64>) -> Reply {
    Reply::Array(numbers.into_iter().map(Reply::Integer).collect())
}
