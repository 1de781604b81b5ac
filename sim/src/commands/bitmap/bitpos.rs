//! BITPOS key bit [start [end [BYTE | BIT]]]: finds the first bit of a string that is 0, or 1.

use bytes::Bytes;

use super::range::{Unit, find};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    generation::Generation,
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bitpos",
    group: Group::Bitmap,
    since: "2.8.7",
    summary: "Finds the first bit of a string that is 0, or 1.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let bit = match integer(&args[2])? {
        0 => false,
        1 => true,
        _ => return Err(Error::of("ERR The bit argument must be 1 or 0.")),
    };
    // Older servers do not check the other arguments if the key does not exist.
    let generation = ctx.node.config.generation;
    if !generation.is_before_7_2() {
        part(args, generation)?;
    }
    // A missing key is an endless sequence of zeros.
    let Some(string) = ctx.read::<Str>(&args[1])? else {
        return Ok(Reply::Integer(if bit { -1 } else { 0 }));
    };
    let bytes = string.bytes();
    let (start, end, unit) = part(args, generation)?;
    let range = unit.bits(start, end.unwrap_or(-1), bytes.len());
    let is_empty = range.is_empty();
    Ok(Reply::Integer(match find(bytes, range, bit) {
        Some(at) => at as i64,
        // The bits after the end are zeros as well, unless the client gave an end.
        None if !bit && !is_empty && end.is_none() => bytes.len() as i64 * 8,
        None => -1,
    }))
}

/// Parses the part of the string. Redis 6.2 has no units.
fn part(args: &[Bytes], generation: Generation) -> Result<(i64, Option<i64>, Unit), Error> {
    Ok(match &args[3..] {
        [] => (0, None, Unit::Byte),
        [start] => (integer(start)?, None, Unit::Byte),
        [start, end] => (integer(start)?, Some(integer(end)?), Unit::Byte),
        [start, end, unit] if generation != Generation::Redis62 => {
            let (start, unit) = (integer(start)?, Unit::parse(unit)?);
            (start, Some(integer(end)?), unit)
        }
        _ => return Err(Error::SYNTAX),
    })
}
