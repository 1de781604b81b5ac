//! SELECT index: selects the database that commands work on.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, int32},
    generation::Feature,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "select",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Selects a database.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let index = usize::try_from(int32(&args[1])?).ok().filter(|index| *index < ctx.node.dbs.len());
    if ctx.node.cluster.is_some() && index != Some(0) {
        return Err(match ctx.node.config.generation.has(Feature::ClusterDatabases) {
            true => Error::DB_OUT_OF_RANGE,
            false => Error::of("ERR SELECT is not allowed in cluster mode"),
        });
    }
    ctx.db = index.ok_or(Error::DB_OUT_OF_RANGE)?;
    ctx.session().db = ctx.db;
    Ok(Reply::OK)
}
