//! HMSET key field value [field value ...]: sets fields, like HSET, but replies with OK.

use bytes::Bytes;

use super::hset::set_all;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hmset",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Sets fields of a hash (the old form of HSET).",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    set_all(ctx, args, "hmset")?;
    Ok(Reply::OK)
}
