//! DBSIZE: counts the keys of the selected database, including expired ones that are not removed
//! yet.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "dbsize",
    group: Group::Server,
    since: "1.0.0",
    summary: "The number of keys in the selected database.",
    arity: 1,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let hidden = ctx.node.with_cluster(ctx.env, |cluster, _, around| cluster.hidden(around)).unwrap_or(0);
    Ok(ctx.raw_db().len().saturating_sub(hidden).into())
}
