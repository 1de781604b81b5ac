//! XADD key [NOMKSTREAM] [MAXLEN | MINID [= | ~] threshold [LIMIT count]] * | id field value [field
//! value ...]: adds an entry.

use bytes::Bytes;

use super::{
    answering,
    ids::{Wanted, word},
    trimming::Options,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    generation::Generation,
    keyspace::{Log, Stream, StreamId},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xadd",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Adds an entry to a stream.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = Options::parse(ctx, args, true)?;
    let key = &args[1];
    let pairs = args.get(options.id_at + 1..).unwrap_or_default();
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(match ctx.node.config.generation {
            Generation::Redis62 => Error::of("ERR wrong number of arguments for XADD"),
            _ => Error::arity("xadd"),
        });
    }
    if options.id == Wanted::Exactly(StreamId::ZERO) {
        return Err(Error::of("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let last_id = match ctx.modify::<Stream>(key)? {
        Some(stream) => stream.log.last_id,
        None if options.only_existing => return Ok(Reply::Null),
        None => StreamId::ZERO,
    };
    if last_id == StreamId::MAX {
        return Err(Error::of("ERR The stream has exhausted the last possible ID, unable to add more items"));
    }
    // A time without free sequence numbers gets the same error text.
    let is_full = options.id == Wanted::Numbered(last_id.ms) && last_id.seq == u64::MAX;
    if is_full || Log::is_too_large(pairs) {
        return Err(Error::of("ERR Elements are too large to be stored"));
    }
    let id = next(options.id, last_id, ctx.wall_ms()).ok_or(Error::of(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item",
    ))?;
    let (encodings, repeats) = (ctx.node.config.keyspace.encodings, ctx.node.propagates());
    let Stream { log, .. } = ctx.modify_or_create::<Stream>(key)?;
    log.append(id, pairs, &encodings);
    let trimmed = options.trim.map_or(0, |trim| log.trim(&trim));
    let mut repeated = if repeats { options.repeated(args, log) } else { None };
    if repeats && !matches!(options.id, Wanted::Exactly(_)) {
        repeated.get_or_insert_with(|| args.to_vec())[options.id_at] = word(id);
    }
    ctx.replied();
    ctx.changed(key, Class::StreamEntry, "xadd");
    if trimmed > 0 {
        ctx.touch(key, Class::Stream, "xtrim");
    }
    if let Some(repeated) = repeated {
        ctx.propagate_as(vec![repeated]);
    }
    Ok(answering::id(id))
}

/// Returns the id of the next entry, which is higher than the last one. If the clock stands still
/// or moves back, the sequence number grows. `None` if no higher id fits.
fn next(wanted: Wanted, last_id: StreamId, now_ms: i64) -> Option<StreamId> {
    let id = match wanted {
        Wanted::Exactly(id) => id,
        Wanted::Numbered(ms) if ms == last_id.ms => StreamId { ms, seq: last_id.seq.checked_add(1)? },
        Wanted::Numbered(ms) => StreamId { ms, seq: 0 },
        Wanted::Auto => {
            let now = StreamId { ms: u64::try_from(now_ms).unwrap_or(0), seq: 0 };
            if now.ms > last_id.ms { now } else { last_id.next()? }
        }
    };
    (id > last_id).then_some(id)
}
