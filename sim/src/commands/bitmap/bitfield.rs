//! BITFIELD key [GET type offset | SET type offset value | INCRBY type offset increment | OVERFLOW
//! WRAP | SAT | FAIL ...]: reads and writes integers of any width inside a string.

use bytes::Bytes;

use super::{
    bits,
    field::{Overflow, Width},
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    generation::Feature,
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bitfield",
    group: Group::Bitmap,
    since: "3.2.0",
    summary: "Reads and writes integers of any width inside a string.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Debug)]
struct Operation {
    verb: Verb,
    width: Width,
    offset: usize,
    overflow: Overflow,
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    carry_out(ctx, args, true)
}

/// Runs BITFIELD, or with `may_write` false BITFIELD_RO.
pub(super) fn carry_out(ctx: &mut Ctx<'_>, args: &[Bytes], may_write: bool) -> Result<Reply, Error> {
    let (key, operations) = (&args[1], parse(ctx, &args[2..])?);
    let writes = operations.iter().filter(|operation| operation.verb != Verb::Get);
    let last_written = writes.map(|operation| operation.offset + operation.width.bits as usize - 1).max();
    let Some(last_written) = last_written else {
        let string = ctx.read::<Str>(key)?;
        let bytes = string.map_or(&[][..], |string| string.bytes());
        let get = |operation: &Operation| Reply::Integer(operation.width.get(bytes, operation.offset));
        return Ok(Reply::Array(operations.iter().map(get).collect()));
    };
    if !may_write {
        return Err(Error::of("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    let always = !ctx.node.config.generation.has(Feature::IdleBits);
    let (replies, changes) = bits::edit(ctx, key, last_written, |bytes, grows| {
        let mut changes = 0;
        let replies = operations
            .iter()
            .map(|operation| apply(operation, bytes, (grows, always), &mut changes))
            .collect();
        (replies, changes)
    })?;
    if changes > 0 {
        ctx.replied();
        ctx.changed_by(changes, key, Class::String, "setbit");
    }
    Ok(Reply::Array(replies))
}

/// Carries out one operation. `always` is set if one that changes nothing is a change, too.
fn apply(
    operation: &Operation,
    bytes: &mut [u8],
    (grows, always): (bool, bool),
    changes: &mut usize,
) -> Reply {
    let Operation { verb, width, offset, overflow } = *operation;
    let old = width.get(bytes, offset);
    let wanted = match verb {
        Verb::Get => return Reply::Integer(old),
        Verb::Add(increment) => i128::from(old) + i128::from(increment),
        // A negative number is a very large one for an unsigned field.
        Verb::Set(value) if !width.signed => i128::from(value as u64),
        // Far below zero, the distance to the largest number overflows, and the server treats the
        // value as too large.
        Verb::Set(value) if overflow == Overflow::Saturate && width.is_too_far_below(value) => {
            i64::MAX.into()
        }
        Verb::Set(value) => value.into(),
    };
    let new = width.fit(wanted, overflow);
    *changes += usize::from(always || new.is_some_and(|new| grows || old != new));
    let Some(new) = new else { return Reply::Null };
    width.set(bytes, offset, new);
    Reply::Integer(if matches!(verb, Verb::Set(_)) { old } else { new })
}

fn parse(ctx: &Ctx<'_>, mut words: &[Bytes]) -> Result<Vec<Operation>, Error> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::default();
    while let [word, rest @ ..] = words {
        let word = word.to_ascii_lowercase();
        let (width, offset, value);
        (width, offset, value, words) = match (word.as_slice(), rest) {
            (b"get", [width, offset, rest @ ..]) => (width, offset, None, rest),
            (b"set" | b"incrby", [width, offset, value, rest @ ..]) => (width, offset, Some(value), rest),
            (b"overflow", [how, rest @ ..]) => {
                overflow = match how.to_ascii_lowercase().as_slice() {
                    b"wrap" => Overflow::Wrap,
                    b"sat" => Overflow::Saturate,
                    b"fail" => Overflow::Fail,
                    _ => return Err(Error::of("ERR Invalid OVERFLOW type specified")),
                };
                words = rest;
                continue;
            }
            _ => return Err(Error::SYNTAX),
        };
        let width = Width::parse(width)?;
        let offset = bits::offset(ctx, offset, Some(width.bits))?;
        let verb = match value.map(|value| integer(value)).transpose()? {
            None => Verb::Get,
            Some(value) if word == b"set" => Verb::Set(value),
            Some(value) => Verb::Add(value),
        };
        operations.push(Operation { verb, width, offset, overflow });
    }
    Ok(operations)
}
