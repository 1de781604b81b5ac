//! TIME: the wall clock as seconds and microseconds.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "time",
    group: Group::Server,
    since: "2.6.0",
    summary: "The wall clock.",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let micros = ctx.env.wall.as_micros();
    let parts = [micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000)];
    Ok(Reply::Array(parts.into_iter().map(|part| Reply::bulk(part.to_string())).collect()))
}
