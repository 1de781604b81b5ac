//! HDEL key field [field ...]: removes fields; replies with the number of removed fields.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hdel",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Removes fields of a hash.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let Some(hash) = ctx.modify::<Hash>(key)? else { return Ok(Reply::Integer(0)) };
    let removed = args[2..].iter().filter(|field| hash.remove(field).is_some()).count();
    if removed > 0 {
        ctx.changed_by(removed, key, Class::Hash, "hdel");
        ctx.drop_if_empty(key);
    }
    Ok(removed.into())
}
