//! SENTINEL INFO-CACHE name ...: shows the last replies to INFO of masters and their replicas.

use bytes::Bytes;

use super::{now, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|info-cache",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Shows what INFO of masters and replicas last said.",
    arity: -3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let names: Vec<String> = args[2..].iter().map(|name| text(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let now = now(ctx);
    Ok(sentinel(ctx).info_cache(&names, now))
}
