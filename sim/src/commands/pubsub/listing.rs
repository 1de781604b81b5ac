//! Shared code of the PUBSUB subcommands for channels and for shard channels.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error},
    effect::Subscription,
    glob::matches,
    resp::Reply,
};

/// Replies with the subscribed names that match the optional pattern in `args`.
pub(super) fn channels(ctx: &mut Ctx<'_>, kind: Subscription, args: &[Bytes]) -> Result<Reply, Error> {
    let pattern = match args {
        [_, _] => None,
        [_, _, pattern] => Some(pattern),
        _ => return Err(Error::subcommand("pubsub", &args[1])),
    };
    let names = ctx.node.clients.pubsub.of(kind).keys();
    let names = names.filter(|name| pattern.is_none_or(|pattern| matches(pattern, name)));
    Ok(Reply::Array(names.map(Reply::from).collect()))
}

/// Replies with each name and its number of subscribers, as a flat array in both protocols.
pub(super) fn counts(ctx: &mut Ctx<'_>, kind: Subscription, names: &[Bytes]) -> Reply {
    let subscriptions = ctx.node.clients.pubsub.of(kind);
    let count = |name: &Bytes| subscriptions.get(name).map_or(0, |subscribers| subscribers.len());
    Reply::Array(names.iter().flat_map(|name| [name.clone().into(), count(name).into()]).collect())
}
