//! PERSIST key: removes the expiry of a key.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "persist",
    group: Group::Generic,
    since: "2.2.0",
    summary: "Removes the expiry of a key.",
    arity: 2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    if ctx.lookup_write(key).is_none_or(|entry| entry.expires_ms().is_none()) {
        return Ok(Reply::Integer(0));
    }
    ctx.set_expiry(key, None);
    ctx.changed(key, Class::Generic, "persist");
    Ok(Reply::Integer(1))
}
