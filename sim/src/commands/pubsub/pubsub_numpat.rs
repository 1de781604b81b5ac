//! PUBSUB NUMPAT: counts the different patterns with subscribers.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pubsub|numpat",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "The number of subscribed patterns.",
    arity: 2,
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(ctx.node.clients.pubsub.of(Subscription::Pattern).len().into())
}
