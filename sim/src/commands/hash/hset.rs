//! HSET key field value [field value ...]: sets fields; replies with the number of new fields.

use bytes::Bytes;

use super::fields::is_valkey;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hset",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Sets fields of a hash.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(set_all(ctx, args, "hset")?.into())
}

/// Sets the fields in `args` after the key; returns the number of new fields.
pub(super) fn set_all(ctx: &mut Ctx<'_>, args: &[Bytes], command: &str) -> Result<usize, Error> {
    let (pairs, rest) = args[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Error::arity(command));
    }
    let encodings = ctx.node.config.keyspace.encodings;
    // In Valkey a field that has expired is a new one.
    let hides = is_valkey(ctx).then(|| ctx.field_rule());
    let is_old = ctx.node.config.generation.is_before_7_2();
    let hash = ctx.modify_or_create::<Hash>(&args[1])?;
    if !is_old {
        hash.expect(pairs.len(), &encodings);
    }
    let mut expired = 0;
    let set = |[field, value]: &&[Bytes; 2]| {
        let is_new = hash.set(field, value, &encodings);
        let was_expired =
            hash.clear_time(field).zip(hides).is_some_and(|(when_ms, rule)| rule.is_past(when_ms));
        expired += usize::from(was_expired);
        is_new || was_expired
    };
    let new = pairs.iter().filter(set).count();
    if expired > 0 {
        ctx.touch(&args[1], Class::Hash, "hexpired");
    }
    ctx.replied();
    ctx.changed_by(pairs.len(), &args[1], Class::Hash, "hset");
    Ok(new)
}
