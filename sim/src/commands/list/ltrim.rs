//! LTRIM key start stop: keeps only the elements from `start` to `stop`, both included.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, index_range, integer},
    effect::Class,
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "ltrim",
    group: Group::List,
    since: "1.0.0",
    summary: "Keeps only a range of elements of a list.",
    arity: 4,
    flags: Flags::WRITE,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    let key = &args[1];
    let Some(list) = ctx.modify::<List>(key)? else { return Ok(Reply::OK) };
    let before = list.len();
    let kept = index_range(start, stop, before);
    let removed = before - kept.len();
    list.trim(kept.start, kept.end);
    ctx.taken(removed, key, Class::List, "ltrim");
    Ok(Reply::OK)
}
