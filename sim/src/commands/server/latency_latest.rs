//! LATENCY LATEST: no spikes.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
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

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Array(Vec::new()))
}
