//! LATENCY RESET [event ...]: how many kinds of events were forgotten, which is none.

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

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Integer(0))
}
