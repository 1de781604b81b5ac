//! LREM key count element: removes elements equal to one; from the tail if count is negative, all
//! of them if it is 0.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    keyspace::{End, List},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lrem",
    group: Group::List,
    since: "1.0.0",
    summary: "Removes equal elements from a list.",
    arity: 4,
    flags: Flags::WRITE,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let count = integer(&args[2])?;
    if count == i64::MIN && !ctx.node.config.generation.is_before_7_2() {
        return Err(Error::NOT_NEGATABLE);
    }
    let key = &args[1];
    let Some(list) = ctx.modify::<List>(key)? else { return Ok(Reply::Integer(0)) };
    let limit = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let end = if count < 0 { End::Right } else { End::Left };
    let removed = list.remove_equal(&args[3], end, usize::try_from(limit).unwrap_or(usize::MAX));
    if removed > 0 {
        ctx.changed_by(removed, key, Class::List, "lrem");
        ctx.drop_if_empty(key);
    }
    Ok(removed.into())
}
