//! XGROUP DELCONSUMER key group consumer: removes a consumer with its pending entries.

use bytes::Bytes;

use super::groups::{NO_STREAM, no_group_of_key};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup|delconsumer",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Removes a consumer from a group.",
    arity: 5,
    flags: Flags::WRITE,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name) = (&args[2], &args[3]);
    let Stream { groups, .. } = ctx.modify::<Stream>(key)?.ok_or(NO_STREAM)?;
    let group = groups.get_mut(name).ok_or_else(|| no_group_of_key(key, name))?;
    let pending = group.delete_consumer(&args[4]);
    if pending.is_some() {
        ctx.changed(key, Class::StreamGroup, "xgroup-delconsumer");
    }
    Ok(pending.unwrap_or(0).into())
}
