//! READONLY: lets the connection read from a replica.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Feature,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "readonly",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lets reads reach a replica of a cluster.",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    // Outside a cluster it applies to clients that a replica redirects.
    if !ctx.node.config.generation.has(Feature::Redirect) {
        with(ctx, |_, _, _| ())?;
    }
    ctx.session().readonly = true;
    Ok(Reply::OK)
}
