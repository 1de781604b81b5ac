//! CLUSTER BUMPEPOCH: takes a config epoch above all others.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|bumpepoch",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Advances the epoch of the configuration.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let (bumped, epoch) = with(ctx, |cluster, _, _| cluster.bump())?;
    Ok(Reply::Status(format!("{} {epoch}", if bumped { "BUMPED" } else { "STILL" }).into()))
}
