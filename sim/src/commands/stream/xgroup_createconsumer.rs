//! XGROUP CREATECONSUMER key group consumer: adds a consumer to a group.

use bytes::Bytes;

use super::groups::{NO_STREAM, no_group_of_key};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup|createconsumer",
    group: Group::Stream,
    since: "6.2.0",
    summary: "Adds a consumer to a group.",
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name, now_ms) = (&args[2], &args[3], ctx.wall_ms());
    let Stream { groups, .. } = ctx.modify::<Stream>(key)?.ok_or(NO_STREAM)?;
    let group = groups.get_mut(name).ok_or_else(|| no_group_of_key(key, name))?;
    let created = group.create_consumer(&args[4], now_ms);
    if created {
        ctx.changed(key, Class::StreamGroup, "xgroup-createconsumer");
    }
    Ok(created.into())
}
