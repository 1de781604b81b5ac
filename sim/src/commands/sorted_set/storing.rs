//! Storing a sorted set as the result of a command.

use bytes::Bytes;

use crate::{
    commands::Ctx,
    effect::Class,
    keyspace::{SortedSet, Value},
    resp::Reply,
};

/// Stores `set` at `target`, whatever it held, as one change, and answers its length. An empty one removes the target.
pub(super) fn store(ctx: &mut Ctx<'_>, target: &Bytes, set: SortedSet, event: &'static str) -> Reply {
    store_as(ctx, target, set, 1, event)
}

/// The same, as so many changes.
pub(in crate::commands) fn store_as(
    ctx: &mut Ctx<'_>,
    target: &Bytes,
    set: SortedSet,
    changes: usize,
    event: &'static str,
) -> Reply {
    let len = set.len();
    if len > 0 {
        ctx.put(target, Value::SortedSet(Box::new(set)), None);
        ctx.changed_by(changes, target, Class::SortedSet, event);
    } else if ctx.remove(target).is_some() {
        ctx.changed(target, Class::Generic, "del");
    }
    len.into()
}
