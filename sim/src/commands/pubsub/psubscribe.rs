//! PSUBSCRIBE pattern [pattern ...]: subscribes to every channel that matches.

use bytes::Bytes;

use super::subscribing::subscribe;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "psubscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Listens to the channels that match patterns.",
    arity: -2,
    flags: Flags::PUBSUB
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::IN_SUBSCRIBER_MODE)
        .union(Flags::ALL_ARE_PATTERNS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    subscribe(ctx, Subscription::Pattern, &args[1..])
}
