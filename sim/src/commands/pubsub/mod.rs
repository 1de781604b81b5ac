//! Commands of publish/subscribe.

mod listing;
mod psubscribe;
mod publish;
#[expect(clippy::module_inception, reason = "the command PUBSUB has the name of its group")]
mod pubsub;
mod pubsub_channels;
mod pubsub_help;
mod pubsub_numpat;
mod pubsub_numsub;
mod pubsub_shardchannels;
mod pubsub_shardnumsub;
mod punsubscribe;
mod spublish;
mod ssubscribe;
mod subscribe;
mod subscribing;
mod sunsubscribe;
mod unsubscribe;

use bytes::Bytes;

use super::{Ctx, Spec};

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &psubscribe::SPEC,
    &publish::SPEC,
    &pubsub::SPEC,
    &punsubscribe::SPEC,
    &spublish::SPEC,
    &ssubscribe::SPEC,
    &subscribe::SPEC,
    &sunsubscribe::SPEC,
    &unsubscribe::SPEC,
];

/// Forwards a message to other nodes, which may have subscribers of their own: replicas, and the
/// nodes of a cluster.
fn propagate(ctx: &mut Ctx<'_>, args: &[Bytes], sharded: bool) {
    let sent = ctx.node.with_cluster(ctx.env, |cluster, _, around| {
        cluster.publish(around, &args[1], &args[2], sharded);
    });
    ctx.propagate_as(if sent.is_some() { Vec::new() } else { vec![args.to_vec()] });
}
