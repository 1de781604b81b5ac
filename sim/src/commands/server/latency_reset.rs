//! LATENCY RESET [event ...]: forgets the spikes of the named events, or of all; replies with the
//! number of events.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|reset",
    group: Group::Server,
    since: "2.8.13",
    summary: "Forgets the spikes.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let named = &args[2..];
    let is_named = |event: &str| {
        named.is_empty() || named.iter().any(|name| name.eq_ignore_ascii_case(event.as_bytes()))
    };
    Ok(ctx.node.latency.reset(is_named).into())
}
