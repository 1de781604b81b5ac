//! LATENCY GRAPH event: an error, because there are no samples.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|graph",
    group: Group::Server,
    since: "2.8.13",
    summary: "Draws the spikes of one kind of event.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let event = String::from_utf8_lossy(&args[2]);
    Err(Error(format!("ERR No samples available for event '{event}'").into()))
}
