//! READWRITE: undoes READONLY.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::{Feature, Generation},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "readwrite",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Sends reads to the master again.",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    // Redis 6.2 checks only READONLY.
    if generation != Generation::Redis62 && !generation.has(Feature::Redirect) {
        with(ctx, |_, _, _| ())?;
    }
    ctx.session().readonly = false;
    Ok(Reply::OK)
}
