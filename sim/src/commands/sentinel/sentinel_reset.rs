//! SENTINEL RESET pattern: forgets the replicas, the other Sentinels and the state of masters.

use bytes::Bytes;

use super::{now, sentinel};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|reset",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Forgets all but the addresses of masters.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let now = now(ctx);
    Ok(sentinel(ctx).reset_matching(&args[2], now).into())
}
