//! SUBSCRIBE channel [channel ...]: listens to channels; one reply each, with the number of subscriptions so far.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    pubsub::Subscription,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "subscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Listens to channels.",
    arity: -2,
    flags: Flags::PUBSUB.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let conn = ctx.conn;
    let mut replies = Vec::with_capacity(args.len() - 1);
    for channel in &args[1..] {
        ctx.node.pubsub.subscribe(Subscription::Channel, channel.clone(), conn);
        let session = ctx.session();
        session.channels.insert(channel.clone());
        let count = session.subscriptions().into();
        replies.push(Reply::Push(vec![Reply::bulk("subscribe"), Reply::Bulk(channel.clone()), count]));
    }
    Ok(Reply::Several(replies))
}
