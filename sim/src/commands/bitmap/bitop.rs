//! BITOP AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE destination key [key ...]: combines
//! strings bit by bit; replies with the length of the result.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    generation::Generation,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "bitop",
    group: Group::Bitmap,
    since: "2.6.0",
    summary: "Combines strings bit by bit, and stores the result.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 2, last: -1, step: 1 },
    subcommands: &[],
    run,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    /// The bits of the first that no other has.
    Diff,
    /// The bits of the others that the first lacks.
    Diff1,
    /// The bits of the first that another has, too.
    AndOr,
    /// The bits that exactly one has.
    One,
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let has_more = ctx.node.config.generation == Generation::Redis82;
    let operation = match args[1].to_ascii_lowercase().as_slice() {
        b"and" => Operation::And,
        b"or" => Operation::Or,
        b"xor" => Operation::Xor,
        b"not" => Operation::Not,
        b"diff" if has_more => Operation::Diff,
        b"diff1" if has_more => Operation::Diff1,
        b"andor" if has_more => Operation::AndOr,
        b"one" if has_more => Operation::One,
        _ => return Err(Error::SYNTAX),
    };
    let (target, keys) = (&args[2], &args[3..]);
    if operation == Operation::Not && keys.len() != 1 {
        return Err(Error::of("ERR BITOP NOT must be called with a single source key."));
    }
    if let Operation::Diff | Operation::Diff1 | Operation::AndOr = operation
        && keys.len() < 2
    {
        let name = String::from_utf8_lossy(&args[1]).to_ascii_uppercase();
        return Err(Error(format!("ERR BITOP {name} must be called with at least two source keys.").into()));
    }
    let mut sources = Vec::with_capacity(keys.len());
    for key in keys {
        sources.push(ctx.read::<Str>(key)?.map(|string| string.bytes().apart()).unwrap_or_default());
    }
    let result = combine(operation, &sources);
    drop(sources);
    let len = result.len();
    if len > 0 {
        ctx.put(target, Value::String(Str::raw(Bytes::from(result))), None);
        ctx.changed(target, Class::String, "set");
    } else if ctx.remove(target).is_some() {
        ctx.changed(target, Class::Generic, "del");
    }
    Ok(len.into())
}

/// Combines strings. The result is as long as the longest; zeros extend the others.
fn combine(operation: Operation, sources: &[Blob]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let (first, others) = sources.split_first().map_or((&[][..], &[][..]), |(first, others)| (first, others));
    if let Operation::Diff | Operation::Diff1 | Operation::AndOr | Operation::One = operation {
        return (0..len).map(|at| combine_byte(operation, sources, at)).collect();
    }
    let mut result = Vec::with_capacity(len);
    result.extend_from_slice(first);
    result.resize(len, 0);
    if operation == Operation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    for other in others {
        let (both, rest) = result.split_at_mut(other.len());
        let pairs = both.iter_mut().zip(other.iter());
        match operation {
            Operation::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Operation::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            _ => {}
        }
    }
    result
}

/// Combines the bytes at one place.
fn combine_byte(operation: Operation, sources: &[Blob], at: usize) -> u8 {
    let byte = |source: &Blob| source.get(at).copied().unwrap_or(0);
    let mut bytes = sources.iter().map(byte);
    if operation == Operation::One {
        let (once, twice) =
            bytes.fold((0, 0), |(once, twice), byte| (once ^ byte, twice | (once | twice) & byte));
        return once & !twice;
    }
    let first = bytes.next().unwrap_or(0);
    let others = bytes.fold(0, |others, byte| others | byte);
    match operation {
        Operation::Diff => first & !others,
        Operation::Diff1 => others & !first,
        _ => first & others,
    }
}
