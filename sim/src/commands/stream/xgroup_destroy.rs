//! XGROUP DESTROY key group: removes a group with its pending entries.

use bytes::Bytes;

use super::groups::NO_STREAM;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup|destroy",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Removes a consumer group.",
    arity: 4,
    flags: Flags::WRITE,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name) = (&args[2], &args[3]);
    let destroyed = ctx.modify::<Stream>(key)?.ok_or(NO_STREAM)?.groups.remove(name).is_some();
    if destroyed {
        ctx.replied();
        ctx.changed(key, Class::StreamGroupGone, "xgroup-destroy");
    }
    Ok(destroyed.into())
}
