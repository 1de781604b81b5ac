//! PUBLISH channel message: sends a message to a channel's subscribers; replies with the number of
//! this node's clients that got it.

use bytes::Bytes;

use super::propagate;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "publish",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Sends a message to the subscribers of a channel.",
    arity: 3,
    flags: Flags::PUBSUB
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::MAY_REPLICATE)
        .union(Flags::FIRST_IS_CHANNEL),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let receivers = ctx.node.clients.receivers(&args[1]);
    ctx.publish(args[1].clone(), args[2].clone(), false);
    propagate(ctx, args, false);
    Ok(receivers.into())
}
