//! XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME ms] [RETRYCOUNT count]
//! [FORCE] [JUSTID] [LASTID id]: assigns pending entries to a consumer.

use bytes::Bytes;

use super::{
    answering,
    groups::{claim, find, no_group, see_consumer, set_id},
    ids::id,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec, printable, ranged},
    generation::Feature,
    keyspace::StreamId,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xclaim",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Gives pending entries to another consumer.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

/// The options after the ids.
#[derive(Default)]
struct Options {
    /// IDLE or TIME: delivery time to record, in milliseconds of the wall clock.
    delivered_ms: Option<i64>,
    /// RETRYCOUNT: number of deliveries to record.
    deliveries: Option<u64>,
    /// FORCE: makes entries pending that are not.
    force: bool,
    /// JUSTID: replies only with ids, and counts no delivery.
    only_ids: bool,
    /// LASTID: minimum read position of the group.
    last_id: StreamId,
}

impl Options {
    fn parse(words: &[Bytes], now_ms: i64) -> Result<Options, Error> {
        let any = |value: &Bytes, error| ranged(value, i64::MIN, i64::MAX, Error::of(error));
        let mut options = Options::default();
        let mut words = words;
        while let [option, rest @ ..] = words {
            words = match (&option.to_ascii_lowercase()[..], rest) {
                (b"force", _) => {
                    options.force = true;
                    rest
                }
                (b"justid", _) => {
                    options.only_ids = true;
                    rest
                }
                (b"idle", [value, rest @ ..]) => {
                    let idle = any(value, "ERR Invalid IDLE option argument for XCLAIM")?;
                    options.delivered_ms = Some(now_ms.wrapping_sub(idle));
                    rest
                }
                (b"time", [value, rest @ ..]) => {
                    let time = any(value, "ERR Invalid TIME option argument for XCLAIM")?;
                    options.delivered_ms = Some(time);
                    rest
                }
                (b"retrycount", [value, rest @ ..]) => {
                    let count = any(value, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
                    options.deliveries = u64::try_from(count).ok();
                    rest
                }
                (b"lastid", [value, rest @ ..]) => {
                    options.last_id = id(value, 0)?;
                    rest
                }
                _ => {
                    let option = printable(option, usize::MAX);
                    return Err(Error(format!("ERR Unrecognized XCLAIM option '{option}'").into()));
                }
            };
        }
        // An impossible time is not an error, because clients compute it with their own clocks.
        options.delivered_ms = options.delivered_ms.filter(|at| (0..=now_ms).contains(at));
        Ok(options)
    }
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name, consumer, now_ms) = (&args[1], &args[2], &args[3], ctx.wall_ms());
    if ctx.lookup(key, Lookup::NO_TOUCH).is_none() || find(ctx, key, name)?.is_none() {
        return Err(no_group(key, name));
    }
    let idle_min_ms =
        ranged(&args[4], i64::MIN, i64::MAX, Error::of("ERR Invalid min-idle-time argument for XCLAIM"))?;
    let ids: Vec<StreamId> = args[5..].iter().map_while(|word| id(word, 0).ok()).collect();
    let options = Options::parse(&args[5 + ids.len()..], now_ms)?;
    let delivered_ms = options.delivered_ms.unwrap_or(now_ms);
    let Some((_, group)) = find(ctx, key, name)? else { return Err(no_group(key, name)) };
    let mut moves_on = options.last_id > group.last_id;
    group.last_id = group.last_id.max(options.last_id);

    let (mut found, mut repeated) = (Vec::new(), Vec::new());
    let mut seen = ctx.node.config.generation.has(Feature::ConsumerActivity);
    if seen {
        see_consumer(ctx, key, name, consumer)?;
    }
    for id in ids {
        let Some((log, group)) = find(ctx, key, name)? else { break };
        let pending = group.pending().get(&id);
        let Some(entry) = log.get(id) else {
            // Remove a deleted entry from the pending entries.
            if let Some(pending) = group.acknowledge(id) {
                repeated.push(claim(key, name, group, id, &pending));
                moves_on = false;
                ctx.effects.dirty += 1;
            }
            continue;
        };
        let deliveries = match pending {
            Some(pending) if idle_min_ms > 0 && now_ms.wrapping_sub(pending.delivered_ms) < idle_min_ms => {
                continue;
            }
            Some(pending) => pending.deliveries,
            None if options.force => 1,
            None => continue,
        };
        let deliveries = options.deliveries.unwrap_or(deliveries.wrapping_add(u64::from(!options.only_ids)));
        found.push(if options.only_ids { answering::id(id) } else { answering::entry(entry) });
        if !seen {
            seen = true;
            see_consumer(ctx, key, name, consumer)?;
        }
        let Some((_, group)) = find(ctx, key, name)? else { break };
        group.assign(id, consumer, delivered_ms, deliveries);
        group.activate(consumer, Some(now_ms));
        repeated.extend(group.pending().get(&id).map(|pending| claim(key, name, group, id, pending)));
        moves_on = false;
        ctx.effects.dirty += 1;
    }
    if moves_on && let Some((_, group)) = find(ctx, key, name)? {
        repeated.push(set_id(key, name, group));
        ctx.effects.dirty += 1;
    }
    ctx.propagate_as(repeated);
    Ok(Reply::Array(found))
}
