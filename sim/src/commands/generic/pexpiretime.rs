//! PEXPIRETIME key: the Unix time in milliseconds at which a key expires; -1 for no expiry, -2 for
//! no key.

use bytes::Bytes;

use super::ttl_unit::{Unit, left};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pexpiretime",
    group: Group::Generic,
    since: "7.0.0",
    summary: "The Unix time in milliseconds at which a key expires.",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let origin_ms = 0;
    Ok(left(ctx, &args[1], origin_ms, Unit::Milliseconds))
}
