//! INFO [section ...]: the state of the server, by sections.

use bytes::Bytes;

use super::sections::print;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "info",
    group: Group::Server,
    since: "1.0.0",
    summary: "Describes the state of the server.",
    arity: -1,
    flags: Flags::LOADING.union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let wanted: Vec<String> =
        args[1..].iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    ctx.node.resize_reply_buffers(ctx.env.monotonic);
    Ok(Reply::Verbatim(*b"txt", print(ctx, &wanted).into()))
}
