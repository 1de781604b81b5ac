//! READWRITE: undoes READONLY.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
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
    with(ctx, |_, _, _| ())?;
    ctx.session().readonly = false;
    Ok(Reply::OK)
}
