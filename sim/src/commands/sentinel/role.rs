//! ROLE of a Sentinel: lists the names of the masters.

use bytes::Bytes;

use super::sentinel;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "role",
    group: Group::Server,
    since: "2.8.12",
    summary: "The masters that are watched.",
    arity: 1,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let names = sentinel(ctx).names().map(Reply::bulk).collect();
    Ok(Reply::Array(vec![Reply::bulk("sentinel"), Reply::Array(names)]))
}
