//! SETRANGE key offset value: overwrites a part of a string, which grows by zero bytes as needed;
//! replies with its length.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "setrange",
    group: Group::String,
    since: "2.2.0",
    summary: "Overwrites a part of a string.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, part) = (&args[1], &args[3]);
    let offset = usize::try_from(integer(&args[2])?).map_err(|_| Error::of("ERR offset is out of range"))?;
    let len_max = ctx.node.config.clients.proto_max_bulk_len;
    let len = ctx.modify::<Str>(key)?.map(|string| string.bytes().len());
    if part.is_empty() {
        return Ok(len.unwrap_or(0).into());
    }
    within(offset, part.len(), len_max)?;
    if len.is_none() {
        ctx.modify_or_create::<Str>(key)?;
    }
    let string = ctx.modify_no_touch::<Str>(key)?.expect("it is there or was just made");
    let len = string.edit(|bytes| {
        let end = offset + part.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset..end].copy_from_slice(part);
        bytes.len()
    });
    ctx.changed(key, Class::String, "setrange");
    Ok(len.into())
}

/// Refuses a string that would grow beyond `proto-max-bulk-len`.
pub(super) fn within(len: usize, more: usize, len_max: usize) -> Result<(), Error> {
    if len.checked_add(more).is_none_or(|len| len > len_max) {
        return Err(Error::of("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    Ok(())
}
