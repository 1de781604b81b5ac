//! XPENDING key group [[IDLE min-idle-time] start end count [consumer]]: the delivered but not
//! acknowledged entries.

use bytes::Bytes;

use super::{answering, groups::no_group, ids};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    keyspace::{self, Stream, StreamId},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xpending",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Entries that were delivered and not acknowledged.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

/// Selection of the pending entries to list.
struct Listing<'a> {
    idle_min_ms: i64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a Bytes>,
}

impl Listing<'_> {
    fn parse(words: &[Bytes]) -> Result<Listing<'_>, Error> {
        let mut idle_min_ms = 0;
        let mut range = words;
        if let [idle, time, rest @ ..] = words
            && idle.eq_ignore_ascii_case(b"idle")
        {
            idle_min_ms = integer(time)?;
            range = rest;
        }
        let [start, end, count, consumer @ ..] = range else { return Err(Error::SYNTAX) };
        Ok(Listing {
            idle_min_ms,
            // Parse the count first, because its error comes first.
            count: usize::try_from(integer(count)?).unwrap_or(0),
            start: ids::start(start)?,
            end: ids::end(end)?,
            consumer: consumer.first(),
        })
    }

    fn answer(&self, group: &keyspace::Group, now_ms: i64) -> Reply {
        let idle = |since: i64| now_ms.wrapping_sub(since);
        let line = |(id, pending): (&StreamId, &keyspace::Pending)| {
            Reply::Array(vec![
                answering::id(*id),
                Reply::from(&pending.consumer),
                Reply::Integer(idle(pending.delivered_ms).max(0)),
                Reply::Integer(pending.deliveries as i64),
            ])
        };
        let is_idle = |(_, pending): &(&StreamId, &keyspace::Pending)| {
            self.idle_min_ms == 0 || idle(pending.delivered_ms) >= self.idle_min_ms
        };
        let (all, range) = (group.pending(), self.start..=self.end);
        if range.is_empty() {
            return Reply::Array(Vec::new());
        }
        let lines: Vec<Reply> = match self.consumer.map(|name| group.consumers().get(name)) {
            None => all.range(range).filter(is_idle).take(self.count).map(line).collect(),
            Some(None) => Vec::new(),
            Some(Some(consumer)) => {
                let own = consumer.pending().range(range).filter_map(|id| all.get_key_value(id));
                own.filter(is_idle).take(self.count).map(line).collect()
            }
        };
        Reply::Array(lines)
    }
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name, now_ms) = (&args[1], &args[2], ctx.wall_ms());
    let listing = match args.len() {
        3 => None,
        6..=9 => Some(Listing::parse(&args[3..])?),
        _ => return Err(Error::SYNTAX),
    };
    let group = ctx.read::<Stream>(key)?.and_then(|stream| stream.groups.get(name));
    let group = group.ok_or_else(|| no_group(key, name))?;
    Ok(match listing {
        Some(listing) => listing.answer(group, now_ms),
        None => summary(group),
    })
}

/// Replies with the number of pending entries, the first and the last id, and the number per
/// consumer.
fn summary(group: &keyspace::Group) -> Reply {
    let pending = group.pending();
    let edge = |edge: Option<(&StreamId, _)>| edge.map_or(Reply::Null, |(id, _)| answering::id(*id));
    let mut consumers = Reply::NullArray;
    if !pending.is_empty() {
        let busy = group.consumers().iter().filter(|(_, consumer)| !consumer.pending().is_empty());
        let line = |(name, consumer): (&Bytes, &keyspace::Consumer)| {
            let pending = Reply::bulk(consumer.pending().len().to_string());
            Reply::Array(vec![Reply::from(name), pending])
        };
        consumers = Reply::Array(busy.map(line).collect());
    }
    let first = edge(pending.first_key_value());
    let last = edge(pending.last_key_value());
    Reply::Array(vec![pending.len().into(), first, last, consumers])
}
