//! XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]: assigns entries that
//! have been pending for long to a consumer.

use bytes::Bytes;

use super::{
    answering,
    groups::{claim, find, no_group, see_consumer},
    ids::start,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec, ranged},
    generation::Feature,
    keyspace::StreamId,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xautoclaim",
    group: Group::Stream,
    since: "6.2.0",
    summary: "Gives entries that are pending for long to another consumer.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

/// Number of entries checked for each one wanted.
const ATTEMPTS: i64 = 10;
/// A server allocates COUNT ids; above this count the allocation fails.
const COUNT_MAX: i64 = 1 << 43;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name, consumer, now_ms) = (&args[1], &args[2], &args[3], ctx.wall_ms());
    // Look up the key before parsing the arguments: the `keymiss` event is emitted even if they are
    // wrong.
    let there = ctx.lookup(key, Lookup::NO_TOUCH).is_some();
    let idle_min_ms =
        ranged(&args[4], i64::MIN, i64::MAX, Error::of("ERR Invalid min-idle-time argument for XAUTOCLAIM"))?;
    let from = start(&args[5])?;
    let (mut count, mut only_ids) = (100, false);
    let mut options = &args[6..];
    while let [option, rest @ ..] = options {
        options = match (&option.to_ascii_lowercase()[..], rest) {
            (b"count", [value, rest @ ..]) => {
                let max = i64::MAX / size_of::<StreamId>() as i64;
                count = ranged(value, 1, max, Error::of("ERR COUNT must be > 0"))?;
                rest
            }
            (b"justid", _) => {
                only_ids = true;
                rest
            }
            _ => return Err(Error::SYNTAX),
        };
    }
    if !there || find(ctx, key, name)?.is_none() {
        return Err(no_group(key, name));
    }
    if count >= COUNT_MAX {
        return Err(Error::of(
            "ERR Insufficient memory, failed allocating transient memory, COUNT too high.",
        ));
    }

    let (mut found, mut gone, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    let generation = ctx.node.config.generation;
    let mut seen = generation.has(Feature::ConsumerActivity);
    if seen {
        see_consumer(ctx, key, name, consumer)?;
    }
    let (mut next, mut attempts) = (Some(from), count * ATTEMPTS);
    while attempts > 0 && count > 0 {
        attempts -= 1;
        let Some((log, group)) = find(ctx, key, name)? else { break };
        let pending = next.and_then(|next| group.pending().range(next..).next());
        let Some((&id, pending)) = pending else {
            next = None;
            break;
        };
        next = id.next();
        let Some(entry) = log.get(id) else {
            // Remove a deleted entry from the pending entries.
            if let Some(pending) = group.acknowledge(id) {
                repeated.push(claim(key, name, group, id, &pending));
            }
            gone.push(answering::id(id));
            count -= 1;
            ctx.effects.dirty += 1;
            continue;
        };
        if idle_min_ms > 0 && now_ms.wrapping_sub(pending.delivered_ms) < idle_min_ms {
            continue;
        }
        let deliveries = pending.deliveries.wrapping_add(u64::from(!only_ids));
        found.push(if only_ids { answering::id(id) } else { answering::entry(entry) });
        count -= 1;
        if !seen {
            seen = true;
            see_consumer(ctx, key, name, consumer)?;
        }
        let Some((_, group)) = find(ctx, key, name)? else { break };
        group.assign(id, consumer, now_ms, deliveries);
        group.activate(consumer, Some(now_ms));
        repeated.extend(group.pending().get(&id).map(|pending| claim(key, name, group, id, pending)));
        ctx.effects.dirty += 1;
    }
    let rest = find(ctx, key, name)?.zip(next);
    let cursor = rest.and_then(|((_, group), next)| group.pending().range(next..).next().map(|(id, _)| *id));
    ctx.propagate_as(repeated);
    let mut replies = vec![answering::id(cursor.unwrap_or(StreamId::ZERO)), Reply::Array(found)];
    if generation.has(Feature::StreamCounters) {
        replies.push(Reply::Array(gone));
    }
    Ok(Reply::Array(replies))
}
