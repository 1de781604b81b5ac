//! SSUBSCRIBE channel [channel ...]: subscribes to shard channels.

use bytes::Bytes;

use super::subscribing::subscribe;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "ssubscribe",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Listens to shard channels.",
    arity: -2,
    flags: Flags::PUBSUB
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::IN_SUBSCRIBER_MODE)
        .union(Flags::ALL_ARE_CHANNELS),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // Unlike SUBSCRIBE and PSUBSCRIBE, it may not be in a transaction.
    if ctx.origin == Origin::Exec {
        return Err(Error::of("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    subscribe(ctx, Subscription::Shard, &args[1..])
}
