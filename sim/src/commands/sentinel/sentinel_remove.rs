//! SENTINEL REMOVE name: stops watching a master.

use bytes::Bytes;

use super::{UNKNOWN, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|remove",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Stops watching a master.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let name = text(&args[2]);
    sentinel(ctx).unwatch(&name).then_some(Reply::OK).ok_or(UNKNOWN)
}
