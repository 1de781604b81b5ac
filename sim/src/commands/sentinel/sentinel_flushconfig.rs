//! SENTINEL FLUSHCONFIG: writes the configuration file.

use bytes::Bytes;

use super::sentinel;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|flushconfig",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Writes the configuration file.",
    arity: 2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let _ = args;
    sentinel(ctx).flush();
    Ok(Reply::OK)
}
