//! XINFO GROUPS key: the groups of a stream.

use bytes::Bytes;

use super::answering::{self, is_known, map};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xinfo|groups",
    group: Group::Stream,
    since: "5.0.0",
    summary: "The groups of a stream.",
    arity: 3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    let stream = ctx.read::<Stream>(&args[2])?.ok_or(Error::NO_SUCH_KEY)?;
    let groups = stream.groups.iter().map(|(name, group)| {
        let shown = [
            ("name", Reply::from(name)),
            ("consumers", group.consumers().len().into()),
            ("pending", group.pending().len().into()),
            ("last-delivered-id", answering::id(group.last_id)),
            ("entries-read", group.entries_read.map_or(Reply::Null, Reply::Integer)),
            ("lag", stream.lag(group).map_or(Reply::Null, Reply::Integer)),
        ];
        map(shown.into_iter().filter(|(name, _)| is_known(name, generation)))
    });
    Ok(Reply::Array(groups.collect()))
}
