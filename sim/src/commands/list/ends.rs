//! Words and event names for the two ends of a list.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error},
    effect::Class,
    keyspace::End,
};

/// Parses LEFT or RIGHT.
pub(super) fn end(word: &[u8]) -> Result<End, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"left" => Ok(End::Left),
        b"right" => Ok(End::Right),
        _ => Err(Error::SYNTAX),
    }
}

/// Returns the word that [`end`] parses.
pub(super) fn word(end: End) -> &'static str {
    match end {
        End::Left => "LEFT",
        End::Right => "RIGHT",
    }
}

/// Returns the event name of a push.
pub(super) fn pushed(end: End) -> &'static str {
    match end {
        End::Left => "lpush",
        End::Right => "rpush",
    }
}

/// Reports that `count` elements were popped from an end, and removes an empty list.
pub(super) fn popped(ctx: &mut Ctx<'_>, key: &Bytes, end: End, count: usize) {
    let event = match end {
        End::Left => "lpop",
        End::Right => "rpop",
    };
    ctx.replied();
    ctx.taken(count, key, Class::List, event);
}

/// Converts an index into a list of `len` elements; negative ones count from the tail. `None` if it
/// is outside.
pub(super) fn position(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}
