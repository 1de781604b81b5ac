//! Replies with stream entries.

use bytes::Bytes;

use crate::{
    commands::Ctx,
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
pub(super) fn map<const N: usize>(fields: [(&'static str, Reply); N]) -> Reply {
    Reply::Map(fields.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}
