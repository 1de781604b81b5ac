//! FLUSHDB [ASYNC | SYNC]: removes all keys of the selected database; both modes free memory alike.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Cached,
    generation::Feature,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "flushdb",
    group: Group::Server,
    since: "1.0.0",
    summary: "Removes all keys of the selected database.",
    arity: -1,
    flags: Flags::WRITE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let lazily = is_lazy(ctx, args)?;
    let before = ctx.effects.dirty;
    flush(ctx, ctx.db, lazily);
    ctx.effects.cache(Cached::Flushed);
    // Redis 6.2 keeps the flush of an empty database to itself.
    if ctx.node.config.generation.has(Feature::EmptyFlushes) || ctx.effects.dirty > before {
        ctx.propagate_as(vec![args.to_vec()]);
    }
    Ok(Reply::OK)
}

/// Returns true if a server would free the memory in the background: by the mode, or without one by
/// the configuration.
pub(super) fn is_lazy(ctx: &Ctx<'_>, args: &[Bytes]) -> Result<bool, Error> {
    match args {
        [_] => Ok(ctx.node.config.memory.lazy_free.user_flush),
        [_, mode] if mode.eq_ignore_ascii_case(b"async") => Ok(true),
        [_, mode] if mode.eq_ignore_ascii_case(b"sync") => Ok(false),
        _ => Err(Error::SYNTAX),
    }
}

/// Removes all keys of a database. If `lazily`, counts all of them as freed in the background.
pub(super) fn flush(ctx: &mut Ctx<'_>, db: usize, lazily: bool) {
    let was = std::mem::take(&mut ctx.node.dbs[db]);
    ctx.node.stats.lazily_freed += if lazily { was.len() as u64 } else { 0 };
    ctx.effects.dirty += was.len() as u64;
    ctx.effects.flushed.push((db, was));
}
