//! MEMORY STATS: the figures there are of the server's own list.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::Node,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "memory|stats",
    group: Group::Server,
    since: "4.0.0",
    summary: "What memory is used for.",
    arity: 2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let used = ctx.node.used_memory();
    let keys: usize = ctx.node.dbs.iter().map(|db| db.len()).sum();
    let dataset = used - Node::STARTUP_MEMORY;
    let figures = [
        ("peak.allocated", used),
        ("total.allocated", used),
        ("startup.allocated", Node::STARTUP_MEMORY),
        ("keys.count", keys),
        ("keys.bytes-per-key", dataset.checked_div(keys).unwrap_or(0)),
        ("dataset.bytes", dataset),
    ];
    Ok(Reply::Map(figures.into_iter().map(|(name, figure)| (Reply::bulk(name), figure.into())).collect()))
}
