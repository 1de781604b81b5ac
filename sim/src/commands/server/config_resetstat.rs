//! CONFIG RESETSTAT: sets the counters of INFO to zero.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::stats::Stats,
    replication::Syncs,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "config|resetstat",
    group: Group::Server,
    since: "2.0.0",
    summary: "Sets the counters of INFO to zero.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    // Keep the number of unsaved changes, and the figures about the last load, save and rewrite.
    let Stats { dirty, loaded, save_secs, rewrite_secs, .. } = ctx.node.stats;
    ctx.node.stats = Stats { dirty, loaded, save_secs, rewrite_secs, ..Stats::default() };
    ctx.node.scripts.reset_evicted();
    ctx.node.replication.syncs = Syncs::default();
    Ok(Reply::OK)
}
