//! LSET key index element: replaces the element at an index.

use bytes::Bytes;

use super::ends::position;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lset",
    group: Group::List,
    since: "1.0.0",
    summary: "Replaces an element of a list.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let list = ctx.modify::<List>(key)?.ok_or(Error::NO_SUCH_KEY)?;
    let index = integer(&args[2])?;
    let index = position(index, list.len()).ok_or(Error::INDEX_OUT_OF_RANGE)?;
    list.set(index, &args[3]);
    ctx.replied();
    ctx.changed(key, Class::List, "lset");
    Ok(Reply::OK)
}
