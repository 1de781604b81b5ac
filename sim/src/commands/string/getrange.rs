//! GETRANGE key start end: a part of a string, both ends included; negative indices count from the
//! end.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "getrange",
    group: Group::String,
    since: "2.4.0",
    summary: "A part of a string.",
    arity: 4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

pub(super) fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    let Some(string) = ctx.read::<Str>(&args[1])? else { return Ok(Blob::EMPTY.into()) };
    let bytes = string.bytes();
    let len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let from_end = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    if start < 0 && end < 0 && start > end {
        return Ok(Blob::EMPTY.into());
    }
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end || len == 0 {
        return Ok(Blob::EMPTY.into());
    }
    let range = start as usize..end as usize + 1;
    // Copy a small part, so that a slow client does not hold the whole value in memory.
    if range.len() < bytes.len() / 2 { Ok(Reply::bulk(&bytes[range])) } else { Ok(bytes.slice(range).into()) }
}
