//! LATENCY HISTORY event: the spikes of an event, oldest first.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::latency::Spike,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|history",
    group: Group::Server,
    since: "2.8.13",
    summary: "The spikes of one kind of event.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let row = |(at, took_ms): Spike| Reply::Array(vec![at.into(), (took_ms as i64).into()]);
    let spikes = ctx.node.latency.of(&args[2]).map(|(_, spikes)| spikes.iter().map(row).collect());
    Ok(Reply::Array(spikes.unwrap_or_default()))
}
