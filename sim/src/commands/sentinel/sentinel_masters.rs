//! SENTINEL MASTERS: shows the state of every master.

use bytes::Bytes;

use super::{now, sentinel};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|masters",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Shows the masters.",
    arity: 2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let _ = args;
    let now = now(ctx);
    Ok(sentinel(ctx).show_masters(now))
}
