//! FLUSHDB [ASYNC | SYNC]: removes all keys of the selected database; both ways are one here.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Cached,
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
    check_mode(args)?;
    flush(ctx, ctx.db);
    ctx.effects.cache(Cached::Flushed);
    ctx.propagate_as(vec![args.to_vec()]);
    Ok(Reply::OK)
}

/// Whether the mode is one of the two, or left out.
pub(super) fn check_mode(args: &[Bytes]) -> Result<(), Error> {
    match args {
        [_] => Ok(()),
        [_, mode] if mode.eq_ignore_ascii_case(b"async") || mode.eq_ignore_ascii_case(b"sync") => Ok(()),
        _ => Err(Error::SYNTAX),
    }
}

/// Removes all keys of a database.
pub(super) fn flush(ctx: &mut Ctx<'_>, db: usize) {
    let was = std::mem::take(&mut ctx.node.dbs[db]);
    ctx.effects.dirty += was.len() as u64;
    ctx.effects.flushed.push((db, was));
}
