//! HDEL key field [field ...]: removes fields; replies with the number of removed fields.

use bytes::Bytes;

use super::fields::is_valkey;
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
    // In Valkey a field that has expired is none.
    let hides = is_valkey(ctx).then(|| ctx.field_rule());
    let Some(hash) = ctx.modify::<Hash>(key)? else { return Ok(Reply::Integer(0)) };
    let remove = |field: &&Bytes| {
        !hides.is_some_and(|rule| hash.is_expired(field, rule)) && hash.remove(field).is_some()
    };
    let removed = args[2..].iter().filter(remove).count();
    if removed > 0 {
        ctx.changed_by(removed, key, Class::Hash, "hdel");
        ctx.drop_if_empty(key);
    }
    Ok(removed.into())
}
