//! SPUBLISH channel message: sends a message to a shard channel's subscribers.

use bytes::Bytes;

use super::propagate;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "spublish",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Sends a message to the subscribers of a shard channel.",
    arity: 3,
    flags: Flags::PUBSUB
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::MAY_REPLICATE)
        .union(Flags::FIRST_IS_CHANNEL),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let receivers = ctx
        .node
        .clients
        .pubsub
        .of(Subscription::Shard)
        .get(&args[1])
        .map_or(0, |subscribers| subscribers.len());
    ctx.publish(args[1].clone(), args[2].clone(), true);
    propagate(ctx, args, true);
    Ok(receivers.into())
}
