//! MEMORY MALLOC-STATS: reports that the allocator has no statistics.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "memory|malloc-stats",
    group: Group::Server,
    since: "4.0.0",
    summary: "The state of the allocator.",
    arity: 2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Verbatim(*b"txt", "Stats not supported for the current allocator".into()))
}
