//! SSUBSCRIBE channel [channel ...]: listens to shard channels.

use bytes::Bytes;

use super::subscribing::subscribe;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    pubsub::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "ssubscribe",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Listens to shard channels.",
    arity: -2,
    flags: Flags::PUBSUB.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    subscribe(ctx, Subscription::Shard, &args[1..])
}
