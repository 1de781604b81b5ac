//! Shared code of the four pushes.

use bytes::Bytes;

use super::ends::pushed;
use crate::{
    commands::{Ctx, Error},
    effect::Class,
    keyspace::{End, List},
    resp::Reply,
};

/// Adds elements one after the other at `end`; with `creates` false only to an existing list.
/// Replies with the length.
pub(super) fn push(ctx: &mut Ctx<'_>, args: &[Bytes], end: End, creates: bool) -> Result<Reply, Error> {
    let (key, elements) = (&args[1], &args[2..]);
    let list = if creates {
        ctx.modify_or_create::<List>(key)?
    } else {
        match ctx.modify::<List>(key)? {
            Some(list) => list,
            None => return Ok(Reply::Integer(0)),
        }
    };
    elements.iter().for_each(|element| list.push(end, element));
    let len = list.len();
    ctx.replied();
    ctx.changed_by(elements.len(), key, Class::List, pushed(end));
    Ok(len.into())
}
