//! SETNX key value: sets a key to a string if it does not exist; replies with 1 if it did so.

use bytes::Bytes;

use super::set::write;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "setnx",
    group: Group::String,
    since: "1.0.0",
    summary: "Sets a key to a string if it does not exist.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.exists_for_write(&args[1]) {
        return Ok(Reply::Integer(0));
    }
    write(ctx, &args[1], &args[2], None, false);
    Ok(Reply::Integer(1))
}
