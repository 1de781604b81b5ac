//! INFO of a Sentinel: its sections, including its own ones.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, server::print_sentinel},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "info",
    group: Group::Server,
    since: "1.0.0",
    summary: "Describes the state of the Sentinel.",
    arity: -1,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let wanted: Vec<String> =
        args[1..].iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    // A Sentinel sends no verbatim text, even in RESP3.
    Ok(Reply::bulk(print_sentinel(ctx, &wanted)))
}
