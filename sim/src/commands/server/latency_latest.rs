//! LATENCY LATEST: for each event with spikes, the latest and the longest one.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::latency::Spikes,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|latest",
    group: Group::Server,
    since: "2.8.13",
    summary: "The latest spikes of latency.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let row = |(event, spikes): (&str, &Spikes)| {
        let (at, took_ms) = spikes.latest();
        Reply::Array(vec![
            Reply::bulk(event),
            at.into(),
            (took_ms as i64).into(),
            (spikes.worst_ms() as i64).into(),
        ])
    };
    Ok(Reply::Array(ctx.node.latency.iter().map(row).collect()))
}
