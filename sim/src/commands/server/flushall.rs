//! FLUSHALL [ASYNC | SYNC]: removes all keys of all databases; both modes free memory alike.

use bytes::Bytes;

use super::flushdb::{flush, is_lazy};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Cached,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "flushall",
    group: Group::Server,
    since: "1.0.0",
    summary: "Removes all keys of all databases.",
    arity: -1,
    flags: Flags::WRITE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let lazily = is_lazy(ctx, args)?;
    for db in 0..ctx.node.dbs.len() {
        flush(ctx, db, lazily);
    }
    ctx.effects.cache(Cached::Flushed);
    ctx.node.replication.own_expiries.clear();
    ctx.node.give_up_snapshot(ctx.env);
    // With save points, the snapshot on disk must become as empty as the memory, and earlier
    // changes no longer count.
    if !ctx.node.config.persistence.save.is_empty() && ctx.node.save(ctx.env).is_ok() {
        ctx.effects.dirty = 0;
    }
    ctx.propagate_as(vec![args.to_vec()]);
    Ok(Reply::OK)
}
