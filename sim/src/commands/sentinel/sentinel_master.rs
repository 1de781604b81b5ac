//! SENTINEL MASTER name: shows the state of a master.

use bytes::Bytes;

use super::{UNKNOWN, now, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|master",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Shows a master.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (name, now) = (text(&args[2]), now(ctx));
    sentinel(ctx).show_master(&name, now).ok_or(UNKNOWN)
}
