//! Storing a sorted set as the result of a command.

use bytes::Bytes;

use crate::{
    commands::Ctx,
    effect::Class,
    keyspace::{SortedSet, Value},
    resp::Reply,
};

/// Stores `set` at `target`, whatever it held, and answers its length. An empty one removes the target.
pub(super) fn store(ctx: &mut Ctx<'_>, target: &Bytes, set: SortedSet, event: &'static str) -> Reply {
    let len = set.len();
    if len > 0 {
        ctx.put(target, Value::SortedSet(Box::new(set)), None);
        ctx.changed(target, Class::SortedSet, event);
    } else if ctx.remove(target).is_some() {
        ctx.changed(target, Class::Generic, "del");
    }
    len.into()
}
