//! LATENCY DOCTOR: says that nothing is measured.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|doctor",
    group: Group::Server,
    since: "2.8.13",
    summary: "Explains the latencies.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Verbatim(
        *b"txt",
        "Commands take no time on this node, so there is no latency to explain.\n".into(),
    ))
}
