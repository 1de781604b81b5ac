//! LRANGE key start stop: the elements from `start` to `stop`, both included.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, index_range, integer},
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lrange",
    group: Group::List,
    since: "1.0.0",
    summary: "A range of elements of a list.",
    arity: 4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    let Some(list) = ctx.read::<List>(&args[1])? else { return Ok(Reply::Array(Vec::new())) };
    let range = index_range(start, stop, list.len());
    let elements = list.iter_from(range.start).take(range.len());
    Ok(Reply::Array(elements.map(Reply::from).collect()))
}
