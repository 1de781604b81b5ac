//! SUBSCRIBE channel [channel ...]: subscribes to channels; sends one reply each, with the number
//! of subscriptions so far.

use bytes::Bytes;

use super::subscribing::subscribe;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "subscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Listens to channels.",
    arity: -2,
    flags: Flags::PUBSUB
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::IN_SUBSCRIBER_MODE)
        .union(Flags::ALL_ARE_CHANNELS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    subscribe(ctx, Subscription::Channel, &args[1..])
}
