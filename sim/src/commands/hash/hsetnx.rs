//! HSETNX key field value: sets a field if it does not exist; replies with 1 if it did so.

use bytes::Bytes;

use super::fields::{is_valkey, look};
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
    let encodings = ctx.node.config.keyspace.encodings;
    let (key, field) = (&args[1], &args[2]);
    let rule = ctx.field_rule();
    let is_valkey = is_valkey(ctx);
    let mut hash = ctx.modify_or_create::<Hash>(key)?;
    if hash.is_expired(field, rule) {
        look(ctx, key, field);
        hash = ctx.modify_or_create::<Hash>(key)?;
    }
    if hash.get_by(field, rule).is_some() {
        return Ok(Reply::Integer(0));
    }
    let has_times = hash.has_times();
    let was_expired = hash.clear_time(field).is_some();
    hash.set(field, &args[3], &encodings);
    if was_expired {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    ctx.replied();
    ctx.changed(key, Class::Hash, "hset");
    if is_valkey && has_times {
        ctx.propagate_as(vec![vec!["HSET".into(), key.clone(), field.clone(), args[3].clone()]]);
    }
    Ok(Reply::Integer(1))
}
