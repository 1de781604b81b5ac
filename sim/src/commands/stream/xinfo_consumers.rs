//! XINFO CONSUMERS key group: the consumers of a group.

use bytes::Bytes;

use super::{answering::map, groups::no_group_of_key};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Feature,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xinfo|consumers",
    group: Group::Stream,
    since: "5.0.0",
    summary: "The consumers of a group.",
    arity: 4,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name, now_ms) = (&args[2], &args[3], ctx.wall_ms());
    let has_activity = ctx.node.config.generation.has(Feature::ConsumerActivity);
    let stream = ctx.read::<Stream>(key)?.ok_or(Error::NO_SUCH_KEY)?;
    let group = stream.groups.get(name).ok_or_else(|| no_group_of_key(key, name))?;
    let consumers = group.consumers().iter().map(|(name, consumer)| {
        let since = |at: i64| now_ms.wrapping_sub(at).max(0);
        let shown = [
            ("name", Reply::from(name)),
            ("pending", consumer.pending().len().into()),
            ("idle", Reply::Integer(since(consumer.seen_ms))),
        ];
        let inactive = ("inactive", Reply::Integer(consumer.active_ms.map_or(-1, since)));
        map(shown.into_iter().chain(has_activity.then_some(inactive)))
    });
    Ok(Reply::Array(consumers.collect()))
}
