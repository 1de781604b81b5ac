//! XINFO STREAM key [FULL [COUNT count]]: describes a stream; FULL adds its entries and groups.

use bytes::Bytes;

use super::answering::{self, entry, is_known, map};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    generation::{Feature, Generation},
    keyspace::{self, Stream, StreamId},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xinfo|stream",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes a stream.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

/// Maximum length of each list in FULL without COUNT.
const COUNT: usize = 10;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    let stream = ctx.read::<Stream>(&args[2])?.ok_or(Error::NO_SUCH_KEY)?;
    let is = |word: &Bytes, name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    match &args[3..] {
        [] => Ok(brief(stream, generation)),
        [option] if is(option, "full") => Ok(full(stream, COUNT, generation)),
        [option, count, number] if is(option, "full") && is(count, "count") => {
            // 0 selects all entries.
            Ok(match usize::try_from(integer(number)?) {
                Ok(0) => full(stream, usize::MAX, generation),
                Ok(count) => full(stream, count, generation),
                Err(_) => full(stream, COUNT, generation),
            })
        }
        _ => Err(Error::subcommand("xinfo", &args[1])),
    }
}

/// Returns the fields with which both forms begin.
fn counters(stream: &Stream) -> [(&'static str, Reply); 7] {
    let log = &stream.log;
    [
        ("length", log.len().into()),
        ("radix-tree-keys", log.nodes().len().into()),
        ("radix-tree-nodes", log.tree_nodes().into()),
        ("last-generated-id", answering::id(log.last_id)),
        ("max-deleted-entry-id", answering::id(log.max_deleted_id)),
        ("entries-added", Reply::Integer(log.entries_added as i64)),
        ("recorded-first-entry-id", answering::id(log.first_id)),
    ]
}

fn with_counters<const N: usize>(
    stream: &Stream,
    generation: Generation,
    further: [(&'static str, Reply); N],
) -> Reply {
    let fields = counters(stream).into_iter().filter(|(name, _)| is_known(name, generation)).chain(further);
    Reply::Map(fields.map(|(name, value)| (Reply::bulk(name), value)).collect())
}

fn brief(stream: &Stream, generation: Generation) -> Reply {
    let mut entries = stream.log.iter();
    let first = entries.next();
    let last = entries.next_back().or(first);
    with_counters(
        stream,
        generation,
        [
            ("groups", stream.groups.len().into()),
            ("first-entry", first.map_or(Reply::Null, entry)),
            ("last-entry", last.map_or(Reply::Null, entry)),
        ],
    )
}

fn full(stream: &Stream, count: usize, generation: Generation) -> Reply {
    let groups = stream.groups.iter().map(|(name, group)| {
        let pending = group.pending().iter().take(count).map(|(id, pending)| {
            Reply::Array(vec![
                answering::id(*id),
                Reply::from(&pending.consumer),
                Reply::Integer(pending.delivered_ms),
                Reply::Integer(pending.deliveries as i64),
            ])
        });
        let shown = [
            ("name", Reply::from(name)),
            ("last-delivered-id", answering::id(group.last_id)),
            ("entries-read", group.entries_read.map_or(Reply::Null, Reply::Integer)),
            ("lag", stream.lag(group).map_or(Reply::Null, Reply::Integer)),
            ("pel-count", group.pending().len().into()),
            ("pending", Reply::Array(pending.collect())),
            ("consumers", consumers(group, count, generation)),
        ];
        map(shown.into_iter().filter(|(name, _)| is_known(name, generation)))
    });
    let entries = stream.log.iter().take(count).map(entry).collect();
    let groups = groups.collect();
    with_counters(stream, generation, [("entries", Reply::Array(entries)), ("groups", Reply::Array(groups))])
}

fn consumers(group: &keyspace::Group, count: usize, generation: Generation) -> Reply {
    let has_activity = generation.has(Feature::ConsumerActivity);
    let consumers = group.consumers().iter().map(|(name, consumer)| {
        let of = |id: &StreamId| group.pending().get_key_value(id);
        let pending = consumer.pending().iter().take(count).filter_map(of).map(|(id, pending)| {
            Reply::Array(vec![
                answering::id(*id),
                Reply::Integer(pending.delivered_ms),
                Reply::Integer(pending.deliveries as i64),
            ])
        });
        let active = ("active-time", Reply::Integer(consumer.active_ms.unwrap_or(-1)));
        let first = [("name", Reply::from(name)), ("seen-time", Reply::Integer(consumer.seen_ms))];
        let last =
            [("pel-count", consumer.pending().len().into()), ("pending", Reply::Array(pending.collect()))];
        map(first.into_iter().chain(has_activity.then_some(active)).chain(last))
    });
    Reply::Array(consumers.collect())
}
