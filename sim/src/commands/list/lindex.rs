//! LINDEX key index: the element at an index; negative ones count from the tail.

use bytes::Bytes;

use super::ends::position;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lindex",
    group: Group::List,
    since: "1.0.0",
    summary: "The element of a list at an index.",
    arity: 3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let Some(list) = ctx.read::<List>(&args[1])? else { return Ok(Reply::Null) };
    let index = integer(&args[2])?;
    Ok(position(index, list.len()).and_then(|index| list.get(index).cloned()).into())
}
