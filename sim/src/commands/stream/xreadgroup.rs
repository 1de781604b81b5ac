//! XREADGROUP GROUP group consumer [COUNT count] [BLOCK ms] [NOACK] STREAMS key [key ...] id [id
//! ...]: delivers entries to a consumer. With `>` it delivers new ones, and may wait for one; with
//! an id it repeats those that the consumer has not acknowledged.

use bytes::Bytes;

use super::{
    answering::{self, by_stream, entry},
    groups::{claim, find, no_group_to_read, see_consumer, set_id},
    ids::id,
    reading::{Words, keys},
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Feature,
    keyspace::{Stream, StreamId, Typed},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xreadgroup",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Delivers entries to a consumer of a group, waiting for new ones.",
    arity: -7,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    keys: Keys::Found(keys),
    subcommands: &[],
    run,
};

/// The kind of entries to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// `>`: entries that were delivered to no consumer of the group.
    New,
    /// The consumer's pending entries after an id.
    Again(StreamId),
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let words = Words::parse(ctx, args, true)?;
    let group = words.group.ok_or(Error::of("ERR Missing GROUP option for XREADGROUP"))?;
    let mut repeated = Vec::new();
    let reply = match ctx.ready.clone() {
        Some(key) => resume(ctx, args, &words, group, key, &mut repeated),
        None => read(ctx, args, &words, group, &mut repeated),
    };
    ctx.propagate_as(repeated);
    reply
}

fn read(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    words: &Words<'_>,
    [group, consumer]: [&Bytes; 2],
    repeated: &mut Vec<Vec<Bytes>>,
) -> Result<Reply, Error> {
    let has_last = ctx.node.config.generation.has(Feature::LastEntry);
    let mut wanted = Vec::with_capacity(words.ids.len());
    for (key, text) in words.keys.iter().zip(words.ids) {
        let stream = ctx.read::<Stream>(key)?;
        if stream.is_none_or(|stream| !stream.groups.contains_key(group)) {
            return Err(no_group_to_read(key, group));
        }
        wanted.push(match &text[..] {
            b">" => Wanted::New,
            b"$" => {
                return Err(Error::of(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                     consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return \
                     an empty result set.",
                ));
            }
            b"+" if has_last => {
                return Err(Error::of(
                    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                     consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return \
                     an empty result set.",
                ));
            }
            // The highest id means new entries as well.
            text => match id(text, 0)? {
                StreamId::MAX => Wanted::New,
                id => Wanted::Again(id),
            },
        });
    }
    let is_seen_always = ctx.node.config.generation.has(Feature::ConsumerActivity);
    let mut read = Vec::new();
    for (key, wanted) in words.keys.iter().zip(wanted) {
        ctx.read::<Stream>(key)?;
        let Some((log, found)) = find(ctx, key, group)? else { continue };
        let has_new = !log.is_empty() && log.top_id() > found.last_id;
        if wanted == Wanted::New && !has_new {
            if is_seen_always {
                greet(ctx, key, words, [group, consumer], repeated)?;
            }
            continue;
        }
        greet(ctx, key, words, [group, consumer], repeated)?;
        let entries = match wanted {
            Wanted::New => deliver(ctx, key, words, [group, consumer], words.count(), repeated)?,
            Wanted::Again(after) => deliver_again(ctx, key, [group, consumer], after, words.count())?,
        };
        ctx.effects.dirty += 1;
        read.push((key.clone(), entries));
    }
    if !read.is_empty() {
        return Ok(by_stream(ctx, read));
    }
    Ok(match words.wait {
        Some(wait) => ctx.wait(args, words.keys, wait, Reply::NullArray),
        None => Reply::NullArray,
    })
}

/// Continues after a wait, when one of the streams may have new entries, or is gone. Servers before
/// Redis 7.2 have errors of their own for this.
fn resume(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    words: &Words<'_>,
    [group, consumer]: [&Bytes; 2],
    key: Bytes,
    repeated: &mut Vec<Vec<Bytes>>,
) -> Result<Reply, Error> {
    // A blocked client does no lookup: no hit, no miss, and no `keymiss` event.
    let has_words = ctx.node.config.generation.is_before_7_2();
    let is_stream = ctx.lookup_write(&key).map(|entry| Stream::of(&entry.value).is_some());
    match is_stream {
        Some(true) => {}
        _ if has_words => return Err(Error::of("UNBLOCKED the stream key no longer exists")),
        Some(false) => return Err(Error::WRONG_TYPE),
        None => return Err(no_group_to_read(&key, group)),
    }
    let Some((log, found)) = find(ctx, &key, group)? else {
        return Err(match has_words {
            true => Error::of("NOGROUP the consumer group this client was blocked on no longer exists"),
            false => no_group_to_read(&key, group),
        });
    };
    let has_new =
        log.last_id > found.last_id && (has_words || !log.is_empty() && log.top_id() > found.last_id);
    if !has_new {
        let wait = words.wait.ok_or(Error::SYNTAX)?;
        return Ok(ctx.wait(args, words.keys, wait, Reply::NullArray));
    }
    greet(ctx, &key, words, [group, consumer], repeated)?;
    let count = words.count_after_wait(ctx.node.config.generation);
    let entries = deliver(ctx, &key, words, [group, consumer], count, repeated)?;
    Ok(by_stream(ctx, vec![(key, entries)]))
}

/// Updates the last activity of the consumer. Propagated reads create it on replicas; if no entry
/// becomes pending, its creation is propagated instead.
fn greet(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    words: &Words<'_>,
    [group, consumer]: [&Bytes; 2],
    repeated: &mut Vec<Vec<Bytes>>,
) -> Result<(), Error> {
    if see_consumer(ctx, key, group, consumer)? && words.unacknowledged {
        let [name, subcommand] = [&b"XGROUP"[..], b"CREATECONSUMER"].map(Bytes::from_static);
        repeated.push(vec![name, subcommand, key.clone(), group.clone(), consumer.clone()]);
    }
    Ok(())
}

/// Delivers entries that were delivered to no consumer of the group.
fn deliver(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    words: &Words<'_>,
    [name, consumer]: [&Bytes; 2],
    count: usize,
    repeated: &mut Vec<Vec<Bytes>>,
) -> Result<Vec<Reply>, Error> {
    let (now_ms, repeats) = (ctx.wall_ms(), ctx.node.propagates());
    let mut entries = Vec::new();
    let Some((log, group)) = find(ctx, key, name)? else { return Ok(entries) };
    let Some(from) = group.last_id.next() else { return Ok(entries) };
    for found in log.range(from, StreamId::MAX).take(count) {
        let id = found.id();
        group.advance(log, id);
        entries.push(entry(found));
        if !words.unacknowledged {
            group.assign(id, consumer, now_ms, 1);
            group.activate(consumer, Some(now_ms));
            let pending = group.pending().get(&id).filter(|_| repeats);
            repeated.extend(pending.map(|pending| claim(key, name, group, id, pending)));
        }
    }
    if words.unacknowledged && !entries.is_empty() {
        repeated.push(set_id(key, name, group));
    }
    Ok(entries)
}

/// Repeats the entries that a consumer has not acknowledged. Deleted entries have no fields.
fn deliver_again(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    [name, consumer]: [&Bytes; 2],
    after: StreamId,
    count: usize,
) -> Result<Vec<Reply>, Error> {
    let now_ms = ctx.wall_ms();
    let Some((log, group)) = find(ctx, key, name)? else { return Ok(Vec::new()) };
    let own = group.consumers().get(consumer).zip(after.next());
    let own: Vec<StreamId> =
        own.map_or(Vec::new(), |(own, from)| own.pending().range(from..).take(count).copied().collect());
    let mut entries = Vec::with_capacity(own.len());
    for id in own {
        entries.push(match log.get(id) {
            Some(found) => {
                group.deliver_again(id, now_ms);
                entry(found)
            }
            None => Reply::Array(vec![answering::id(id), Reply::NullArray]),
        });
    }
    Ok(entries)
}
