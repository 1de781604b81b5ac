//! SREM key member [member ...]: removes members; replies with the number of removed ones.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "srem",
    group: Group::Set,
    since: "1.0.0",
    summary: "Removes members from a set.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let Some(set) = ctx.modify::<Set>(key)? else { return Ok(Reply::Integer(0)) };
    let removed = args[2..].iter().filter(|member| set.remove(member)).count();
    if removed > 0 {
        ctx.changed_by(removed, key, Class::Set, "srem");
        ctx.drop_if_empty(key);
    }
    Ok(removed.into())
}
