//! SAVE: saves a snapshot to disk.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    log::Level,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "save",
    group: Group::Server,
    since: "1.0.0",
    summary: "Saves a snapshot to disk.",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.writes_snapshot() {
        return Err(Error::SAVING);
    }
    ctx.node.stats.saves += 1;
    ctx.node.save(ctx.env).map(|()| Reply::OK).map_err(|error| {
        ctx.env.log(Level::Warning, || format!("The snapshot cannot be saved: {error}"));
        Error::BARE
    })
}
