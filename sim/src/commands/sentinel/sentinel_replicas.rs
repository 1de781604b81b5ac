//! SENTINEL REPLICAS name: shows the state of a master's replicas.

use bytes::Bytes;

use super::{UNKNOWN, now, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
    sentinel::Wanted,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|replicas",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Shows the replicas of a master.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (name, now) = (text(&args[2]), now(ctx));
    sentinel(ctx).show_others(&name, Wanted::Replicas, now).ok_or(UNKNOWN)
}
