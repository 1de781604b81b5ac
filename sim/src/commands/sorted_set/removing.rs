//! Shared code of the commands that remove a range.

use bytes::Bytes;

use super::bounds::Bounds;
use crate::{
    blob::Blob,
    commands::{Ctx, Error},
    effect::Class,
    keyspace::SortedSet,
    resp::Reply,
};

/// Removes the members in `bounds`; replies with their number.
pub(super) fn remove(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    bounds: &Bounds,
    event: &'static str,
) -> Result<Reply, Error> {
    let Some(set) = ctx.modify::<SortedSet>(key)? else { return Ok(Reply::Integer(0)) };
    let members: Vec<Blob> =
        set.range(bounds.ranks(set, false), false).map(|(_, member)| member.clone()).collect();
    for member in &members {
        set.remove(member);
    }
    if !members.is_empty() {
        ctx.changed_by(members.len(), key, Class::SortedSet, event);
        ctx.drop_if_empty(key);
    }
    Ok(members.len().into())
}
