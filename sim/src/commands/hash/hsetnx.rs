//! HSETNX key field value: sets a field if it does not exist; replies with 1 if it did so.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hsetnx",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Sets a field of a hash if it is not there.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let encodings = ctx.node.config.encodings;
    let (key, field) = (&args[1], &args[2]);
    let hash = ctx.modify_or_create::<Hash>(key)?;
    if hash.contains(field) {
        return Ok(Reply::Integer(0));
    }
    hash.set(field, &args[3], &encodings);
    ctx.replied();
    ctx.changed(key, Class::Hash, "hset");
    Ok(Reply::Integer(1))
}
