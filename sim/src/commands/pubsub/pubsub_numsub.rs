//! PUBSUB NUMSUB [channel ...]: counts the subscribers of each channel, without those of patterns.

use bytes::Bytes;

use super::listing::counts;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pubsub|numsub",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "How many subscribers channels have.",
    arity: -2,
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(counts(ctx, Subscription::Channel, &args[2..]))
}
