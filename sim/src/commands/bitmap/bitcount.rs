//! BITCOUNT key [start end [BYTE | BIT]]: counts the bits of a string, or of a part of it, that are
//! 1.

use bytes::Bytes;

use super::range::{Unit, count};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bitcount",
    group: Group::Bitmap,
    since: "2.6.0",
    summary: "Counts the bits of a string that are 1.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // If the key does not exist, the other arguments are not checked.
    let Some(string) = ctx.read::<Str>(&args[1])? else { return Ok(Reply::Integer(0)) };
    let bytes = string.bytes();
    let (start, end, unit) = match &args[2..] {
        [] => (0, -1, None),
        [start, end, unit @ ..] if unit.len() <= 1 => (integer(start)?, integer(end)?, unit.first()),
        _ => return Err(Error::SYNTAX),
    };
    if start < 0 && end < 0 && start > end {
        return Ok(Reply::Integer(0));
    }
    let unit = unit.map_or(Ok(Unit::Byte), Unit::parse)?;
    Ok(count(bytes, unit.bits(start, end, bytes.len())).into())
}
