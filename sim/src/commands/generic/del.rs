//! DEL key [key ...]: removes keys.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "del",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Removes keys.",
    arity: -2,
    flags: Flags::WRITE,
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let lazily = ctx.node.config.memory.lazy_free.user_del;
    Ok(remove_all(ctx, &args[1..], lazily))
}

/// Removes keys and frees their values `lazily`; replies with the number of removed keys.
pub(super) fn remove_all(ctx: &mut Ctx<'_>, keys: &[Bytes], lazily: bool) -> Reply {
    let mut removed = 0;
    for key in keys {
        if ctx.exists_for_write(key)
            && let Some(gone) = ctx.remove(key)
        {
            ctx.node.count_freed(&gone.value, lazily);
            ctx.changed(key, Class::Generic, "del");
            removed += 1;
        }
    }
    Reply::Integer(removed)
}
