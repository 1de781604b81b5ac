//! GETBIT key offset: a bit of a string; 0 beyond its end.

use bytes::Bytes;

use super::bits;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "getbit",
    group: Group::Bitmap,
    since: "2.2.0",
    summary: "A bit of a string.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let offset = bits::offset(ctx, &args[2], None)?;
    let string = ctx.read::<Str>(&args[1])?;
    Ok(string.is_some_and(|string| bits::get(string.bytes(), offset)).into())
}
