//! LATENCY HISTOGRAM [command ...]: nothing, because commands take no time here.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|histogram",
    group: Group::Server,
    since: "7.0.0",
    summary: "How long commands took.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Map(Vec::new()))
}
