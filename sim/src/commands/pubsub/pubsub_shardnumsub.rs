//! PUBSUB SHARDNUMSUB [channel ...]: counts the subscribers of each shard channel.

use bytes::Bytes;

use super::listing::counts;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pubsub|shardnumsub",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "How many subscribers shard channels have.",
    arity: -2,
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(counts(ctx, Subscription::Shard, &args[2..]))
}
