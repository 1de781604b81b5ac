//! Stores a sorted set as the result of a command.

use bytes::Bytes;

use crate::{
    commands::Ctx,
    effect::Class,
    keyspace::{SortedSet, Value},
    resp::Reply,
};

/// Stores `set` at `target`, whatever it held, as one change, and replies with its length. An empty
/// set removes the target.
pub(super) fn store(ctx: &mut Ctx<'_>, target: &Bytes, set: SortedSet, event: &'static str) -> Reply {
    write(ctx, target, set, (1, event), true)
}

/// Stores the result as `changes` changes, with the event before the reply.
pub(in crate::commands) fn store_as(
    ctx: &mut Ctx<'_>,
    target: &Bytes,
    set: SortedSet,
    changes: usize,
    event: &'static str,
) -> Reply {
    write(ctx, target, set, (changes, event), false)
}

/// Stores `set`. The event follows the reply if `replies` is true: a server replies first.
fn write(
    ctx: &mut Ctx<'_>,
    target: &Bytes,
    set: SortedSet,
    (changes, event): (usize, &'static str),
    replies: bool,
) -> Reply {
    let len = set.len();
    if len > 0 {
        ctx.put(target, Value::SortedSet(Box::new(set)), None);
        if replies {
            ctx.replied();
        }
        ctx.changed_by(changes, target, Class::SortedSet, event);
    } else if ctx.remove(target).is_some() {
        if replies {
            ctx.replied();
        }
        ctx.changed(target, Class::Generic, "del");
    }
    len.into()
}
