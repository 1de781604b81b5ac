//! PUBSUB CHANNELS [pattern]: the channels that have subscribers.

use bytes::Bytes;

use super::listing::channels;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pubsub|channels",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "The channels that have subscribers.",
    arity: -2,
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    channels(ctx, Subscription::Channel, args)
}
