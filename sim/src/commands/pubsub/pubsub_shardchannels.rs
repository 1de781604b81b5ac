//! PUBSUB SHARDCHANNELS [pattern]: the shard channels that have subscribers.

use bytes::Bytes;

use super::listing::channels;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pubsub|shardchannels",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "The shard channels that have subscribers.",
    arity: -2,
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    channels(ctx, Subscription::Shard, args)
}
