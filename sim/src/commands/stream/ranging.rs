//! Shared code of XRANGE and XREVRANGE.

use bytes::Bytes;

use super::{
    answering::entry,
    ids::{end, start},
};
use crate::{
    commands::{Ctx, Error, integer},
    keyspace::Stream,
    resp::Reply,
};

/// Replies with up to COUNT entries between two ids. If `reversed`, the end comes first in the
/// arguments.
pub(super) fn range(ctx: &mut Ctx<'_>, args: &[Bytes], reversed: bool) -> Result<Reply, Error> {
    let [from, to] = if reversed { [3, 2] } else { [2, 3] }.map(|at| &args[at]);
    let (from, to) = (start(from)?, end(to)?);
    let mut count = None;
    let (options, rest) = args[4..].as_chunks::<2>();
    for [option, value] in options {
        if !option.eq_ignore_ascii_case(b"count") {
            return Err(Error::SYNTAX);
        }
        // A negative count is 0. The reply is then null instead of an empty array.
        count = Some(usize::try_from(integer(value)?).unwrap_or(0));
    }
    if !rest.is_empty() {
        return Err(Error::SYNTAX);
    }
    let Some(stream) = ctx.read::<Stream>(&args[1])? else { return Ok(Reply::Array(Vec::new())) };
    if count == Some(0) {
        return Ok(Reply::NullArray);
    }
    let entries = stream.log.range(from, to);
    let count = count.unwrap_or(usize::MAX);
    Ok(Reply::Array(if reversed {
        entries.rev().take(count).map(entry).collect()
    } else {
        entries.take(count).map(entry).collect()
    }))
}
