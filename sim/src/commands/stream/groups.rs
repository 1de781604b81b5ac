//! Shared code of the group commands: finds a group, and propagates its reads.

use bytes::Bytes;

use super::ids::word;
use crate::{
    commands::{Ctx, Error, integer, printable},
    effect::Class,
    generation::Generation,
    keyspace::{Group, Log, Pending, Stream, StreamId},
};

fn text(bytes: &[u8]) -> String {
    // The error ends at the first zero byte.
    printable(bytes, usize::MAX)
}

/// Error of XGROUP's subcommands for a missing key.
pub(super) const NO_STREAM: Error = Error::of(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to \
     create an empty stream automatically.",
);

/// The key or the group does not exist.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> Error {
    Error(format!("NOGROUP No such key '{}' or consumer group '{}'", text(key), text(group)).into())
}

/// The error NOGROUP with the text of XREADGROUP.
pub(super) fn no_group_to_read(key: &[u8], group: &[u8]) -> Error {
    let Error(why) = no_group(key, group);
    Error(format!("{why} in XREADGROUP with GROUP option").into())
}

/// The key exists, but has no such group.
pub(super) fn no_group_of_key(key: &[u8], group: &[u8]) -> Error {
    Error(format!("NOGROUP No such consumer group '{}' for key name '{}'", text(group), text(key)).into())
}

/// Returns the count of ENTRIESREAD for a stream to which `added` entries were added. From 7.4 on,
/// Redis keeps no higher one.
pub(super) fn entries_read(read: Option<i64>, added: u64, generation: Generation) -> Option<i64> {
    let has_bound = !generation.is_before_7_2() && !generation.is_valkey();
    read.map(|read| if has_bound { read.min(i64::try_from(added).unwrap_or(i64::MAX)) } else { read })
}

/// Parses ENTRIESREAD: a count, or -1 for an unknown one.
pub(super) fn parse_entries_read(count: &[u8]) -> Result<Option<i64>, Error> {
    match integer(count)? {
        -1 => Ok(None),
        read @ 0.. => Ok(Some(read)),
        _ => Err(Error::of("ERR value for ENTRIESREAD must be positive or -1")),
    }
}

/// Returns a stream's entries and one of its groups, for changes to the group.
pub(super) fn find<'c>(
    ctx: &'c mut Ctx<'_>,
    key: &[u8],
    group: &[u8],
) -> Result<Option<(&'c mut Log, &'c mut Group)>, Error> {
    let Some(Stream { log, groups }) = ctx.modify::<Stream>(key)? else { return Ok(None) };
    Ok(groups.get_mut(group).map(|group| (log, group)))
}

/// Updates the last activity of a consumer, and creates a missing one; returns true if it was
/// created. The group must exist.
pub(super) fn see_consumer(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    group: &[u8],
    name: &Bytes,
) -> Result<bool, Error> {
    let now_ms = ctx.wall_ms();
    let created = find(ctx, key, group)?
        .is_some_and(|(_, group)| !group.see(name, now_ms) && group.create_consumer(name, now_ms));
    if created {
        ctx.changed(key, Class::StreamGroup, "xgroup-createconsumer");
    }
    Ok(created)
}

/// Makes the command that propagates the delivery of an entry to a consumer.
pub(super) fn claim(key: &Bytes, name: &Bytes, group: &Group, id: StreamId, pending: &Pending) -> Vec<Bytes> {
    let fixed = |text: &'static str| Bytes::from_static(text.as_bytes());
    vec![
        fixed("XCLAIM"),
        key.clone(),
        name.clone(),
        pending.consumer.clone(),
        fixed("0"),
        word(id),
        fixed("TIME"),
        word(pending.delivered_ms),
        fixed("RETRYCOUNT"),
        word(pending.deliveries),
        fixed("FORCE"),
        fixed("JUSTID"),
        fixed("LASTID"),
        word(group.last_id),
    ]
}

/// Makes the command that propagates a group's read position.
pub(super) fn set_id(key: &Bytes, name: &Bytes, group: &Group) -> Vec<Bytes> {
    let fixed = |text: &'static str| Bytes::from_static(text.as_bytes());
    let read = word(group.entries_read.unwrap_or(-1));
    vec![
        fixed("XGROUP"),
        fixed("SETID"),
        key.clone(),
        name.clone(),
        word(group.last_id),
        fixed("ENTRIESREAD"),
        read,
    ]
}
