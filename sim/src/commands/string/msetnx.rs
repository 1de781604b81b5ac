//! MSETNX key value [key value ...]: sets several keys atomically, if none of them exists.

use bytes::Bytes;

use super::mset::{set_all, unpaired};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "msetnx",
    group: Group::String,
    since: "1.0.1",
    summary: "Sets several keys to strings if none of them exists.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: -1, step: 2 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args.len().is_multiple_of(2) {
        return Err(unpaired(ctx, "msetnx"));
    }
    if args[1..].iter().step_by(2).any(|key| ctx.exists_for_write(key)) {
        return Ok(Reply::Integer(0));
    }
    set_all(ctx, &args[1..], "msetnx")?;
    Ok(Reply::Integer(1))
}
