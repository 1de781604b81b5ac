//! BITCOUNT key [start [end [BYTE | BIT]]]: counts the bits of a string, or of a part of it, that
//! are 1.

use bytes::Bytes;

use super::range::{Unit, count};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    generation::Generation,
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
    let generation = ctx.node.config.generation;
    // Older servers do not check the other arguments if the key does not exist.
    if !generation.is_before_7_2() {
        part(generation, args)?;
    }
    let Some(string) = ctx.read::<Str>(&args[1])? else { return Ok(Reply::Integer(0)) };
    let bytes = string.bytes();
    let (start, end, unit) = part(generation, args)?;
    if start < 0 && end < 0 && start > end {
        return Ok(Reply::Integer(0));
    }
    let unit = unit.map_or(Ok(Unit::Byte), Unit::parse)?;
    Ok(count(bytes, unit.bits(start, end, bytes.len())).into())
}

/// Parses the part of the string. Older servers check the unit later, and
/// Redis 6.2 has none.
fn part(generation: Generation, args: &[Bytes]) -> Result<(i64, i64, Option<&Bytes>), Error> {
    let (start, end, unit) = match &args[2..] {
        [] => (0, -1, None),
        [start] if generation.is_valkey() => (integer(start)?, -1, None),
        [_, _, _] if generation == Generation::Redis62 => return Err(Error::SYNTAX),
        [start, end, unit @ ..] if unit.len() <= 1 => (integer(start)?, integer(end)?, unit.first()),
        _ => return Err(Error::SYNTAX),
    };
    if !generation.is_before_7_2() {
        unit.map(Unit::parse).transpose()?;
    }
    Ok((start, end, unit))
}
