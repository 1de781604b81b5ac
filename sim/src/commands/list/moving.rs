//! Shared code of the commands that move an element from list to list.

use bytes::Bytes;

use super::ends::{popped, pushed};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, Wait},
    effect::Class,
    keyspace::{End, List},
    resp::Reply,
};

/// Moves one element; the two keys may be equal. `None` if the source does not exist.
pub(super) fn shift(
    ctx: &mut Ctx<'_>,
    [from, to]: [&Bytes; 2],
    [from_end, to_end]: [End; 2],
) -> Result<Option<Blob>, Error> {
    if !ctx.check::<List>(from)? {
        return Ok(None);
    }
    // Check the target's type before any change.
    ctx.check::<List>(to)?;
    let Some(element) = ctx.modify::<List>(from)?.and_then(|list| list.pop(from_end)) else {
        return Ok(None);
    };
    ctx.modify_or_create::<List>(to)?.push(to_end, element.apart());
    ctx.touch(to, Class::List, pushed(to_end));
    ctx.take_as_pushed_to();
    popped(ctx, from, from_end, 1);
    Ok(Some(element))
}

/// Moves one element, or waits for one. Propagates `repeated`.
pub(super) fn shift_or_wait(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    ends: [End; 2],
    wait: Wait,
    repeated: Vec<Bytes>,
) -> Result<Reply, Error> {
    let Some(element) = shift(ctx, [&args[1], &args[2]], ends)? else {
        return Ok(ctx.wait(args, &args[1..2], wait, Reply::Null));
    };
    ctx.propagate_as(vec![repeated]);
    Ok(Reply::from(element))
}
