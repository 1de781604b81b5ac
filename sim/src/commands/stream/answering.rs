//! Replies with stream entries.

use bytes::Bytes;

use crate::{
    commands::Ctx,
    generation::{Feature, Generation},
    keyspace::{EntryRef, StreamId},
    resp::{Protocol, Reply},
};

pub(super) fn id(id: StreamId) -> Reply {
    Reply::bulk(id.to_string())
}

/// Replies with an entry: its id, and its alternating fields and values.
pub(super) fn entry(entry: EntryRef<'_>) -> Reply {
    let mut words = Vec::with_capacity(entry.len() * 2);
    for (field, value) in entry.pairs() {
        words.extend([Reply::from(field), Reply::from(value)]);
    }
    Reply::Array(vec![id(entry.id()), Reply::Array(words)])
}

/// Replies with the entries read from each stream, by key.
pub(super) fn by_stream(ctx: &Ctx<'_>, read: Vec<(Bytes, Vec<Reply>)>) -> Reply {
    let pairs = read.into_iter().map(|(key, entries)| (Reply::from(key), Reply::Array(entries)));
    match ctx.protocol() {
        Protocol::Resp2 => {
            Reply::Array(pairs.map(|(key, entries)| Reply::Array(vec![key, entries])).collect())
        }
        Protocol::Resp3 => Reply::Map(pairs.collect()),
    }
}

/// Replies with a map whose keys are words.
pub(super) fn map(fields: impl IntoIterator<Item = (&'static str, Reply)>) -> Reply {
    Reply::Map(fields.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}

/// The fields that came with Redis 7.0.
const NEWER: [&str; 5] =
    ["max-deleted-entry-id", "entries-added", "recorded-first-entry-id", "entries-read", "lag"];

/// Returns true if servers of the generation have a field of XINFO.
pub(super) fn is_known(field: &str, generation: Generation) -> bool {
    generation.has(Feature::StreamCounters) || !NEWER.contains(&field)
}
