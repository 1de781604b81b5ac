//! The words for the two ends of a list, and the names that go with each.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error},
    effect::Class,
    keyspace::End,
};

/// Reads LEFT or RIGHT.
pub(super) fn end(word: &[u8]) -> Result<End, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"left" => Ok(End::Left),
        b"right" => Ok(End::Right),
        _ => Err(Error::SYNTAX),
    }
}

/// The word that [`end`] reads.
pub(super) fn word(end: End) -> &'static str {
    match end {
        End::Left => "LEFT",
        End::Right => "RIGHT",
    }
}

/// The event of an element added.
pub(super) fn pushed(end: End) -> &'static str {
    match end {
        End::Left => "lpush",
        End::Right => "rpush",
    }
}

/// Reports that `count` elements were taken from an end, and drops the list with its last one.
pub(super) fn popped(ctx: &mut Ctx<'_>, key: &Bytes, end: End, count: usize) {
    let event = match end {
        End::Left => "lpop",
        End::Right => "rpop",
    };
    ctx.replied();
    ctx.taken(count, key, Class::List, event);
}

/// Index `index` of a list of `len` elements, where negative ones count from the tail.
pub(super) fn position(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}
