//! ZREM key member [member ...]: removes members; replies with the number of removed ones.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrem",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Removes members from a sorted set.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let Some(set) = ctx.modify::<SortedSet>(key)? else { return Ok(Reply::Integer(0)) };
    let removed = args[2..].iter().filter(|member| set.remove(member).is_some()).count();
    if removed > 0 {
        ctx.taken(removed, key, Class::SortedSet, "zrem");
    }
    Ok(removed.into())
}
