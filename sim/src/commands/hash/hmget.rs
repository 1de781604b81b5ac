//! HMGET key field [field ...]: the values of several fields; null for a missing one.

use bytes::Bytes;

use super::fields::remove_expired;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hmget",
    group: Group::Hash,
    since: "2.0.0",
    summary: "The values of several fields of a hash.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let rule = ctx.field_rule();
    let (key, fields) = (&args[1], &args[2..]);
    let hash = ctx.read::<Hash>(key)?;
    let value = |field: &Bytes| hash.and_then(|hash| hash.get_by(field, rule).cloned()).into();
    let reply = Reply::Array(fields.iter().map(value).collect());
    let has_expired = hash.is_some_and(|hash| fields.iter().any(|field| hash.is_expired(field, rule)));
    // As in Redis 8.2: no event if no field is left.
    if has_expired && remove_expired(ctx, key, fields) > 0 && !ctx.remove_if_empty(key) {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    Ok(reply)
}
