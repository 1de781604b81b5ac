//! BITOP AND | OR | XOR | NOT destination key [key ...]: combines strings bit by bit; replies with
//! the length of the result.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
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
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let operation = match args[1].to_ascii_lowercase().as_slice() {
        b"and" => Operation::And,
        b"or" => Operation::Or,
        b"xor" => Operation::Xor,
        b"not" => Operation::Not,
        _ => return Err(Error::SYNTAX),
    };
    let (target, keys) = (&args[2], &args[3..]);
    if operation == Operation::Not && keys.len() != 1 {
        return Err(Error::of("ERR BITOP NOT must be called with a single source key."));
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
            Operation::Not => {}
        }
    }
    result
}
