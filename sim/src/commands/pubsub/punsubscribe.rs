//! PUNSUBSCRIBE [pattern ...]: unsubscribes from patterns, from all without arguments.

use bytes::Bytes;

use super::subscribing::unsubscribe;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "punsubscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Stops listening to patterns.",
    arity: -1,
    flags: Flags::PUBSUB
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::IN_SUBSCRIBER_MODE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(unsubscribe(ctx, Subscription::Pattern, &args[1..]))
}
