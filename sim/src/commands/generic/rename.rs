//! RENAME key newkey: renames a key, and overwrites the key of the new name.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::{Class, Signal},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "rename",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Renames a key.",
    arity: 3,
    flags: Flags::WRITE,
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    rename(ctx, &args[1], &args[2], true)?;
    Ok(Reply::OK)
}

/// Renames a key. Returns false if `to` exists and `replace` is false.
pub(super) fn rename(ctx: &mut Ctx<'_>, from: &Bytes, to: &Bytes, replace: bool) -> Result<bool, Error> {
    if !ctx.exists_for_write(from) {
        return Err(Error::NO_SUCH_KEY);
    }
    if from == to {
        return Ok(replace);
    }
    if ctx.exists_for_write(to) {
        if !replace {
            return Ok(false);
        }
        // The renamed key is a new key, so remove the old one.
        ctx.remove(to);
    }
    let Some(entry) = ctx.remove(from) else { return Err(Error::NO_SUCH_KEY) };
    ctx.put_entry(to, entry);
    ctx.effects.dirty += 1;
    // Both invalidations precede both events.
    ctx.signal(from);
    ctx.signal(to);
    ctx.touch_as(from, Class::Generic, "rename_from", Some(Signal::Apart));
    ctx.touch_as(to, Class::Generic, "rename_to", Some(Signal::Apart));
    Ok(true)
}
