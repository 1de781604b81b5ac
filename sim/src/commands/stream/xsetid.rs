//! XSETID key last-id [ENTRIESADDED count] [MAXDELETEDID id]: sets the counters of a stream.

use bytes::Bytes;

use super::ids::id;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    keyspace::{Stream, StreamId},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xsetid",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Sets the last id of a stream and its counters.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let last_id = id(&args[2], 0)?;
    let (mut entries_added, mut max_deleted_id) = (None, StreamId::ZERO);
    let (options, rest) = args[3..].as_chunks::<2>();
    for [option, value] in options {
        match &option.to_ascii_lowercase()[..] {
            b"entriesadded" => {
                let added = u64::try_from(integer(value)?);
                entries_added = Some(added.map_err(|_| Error::of("ERR entries_added must be positive"))?);
            }
            b"maxdeletedid" => {
                max_deleted_id = id(value, 0)?;
                if last_id < max_deleted_id {
                    return Err(Error::of(
                        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                    ));
                }
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    if !rest.is_empty() {
        return Err(Error::SYNTAX);
    }
    let Stream { log, .. } = ctx.modify::<Stream>(key)?.ok_or(Error::NO_SUCH_KEY)?;
    if !log.is_empty() {
        if last_id < log.top_id() {
            return Err(Error::of(
                "ERR The ID specified in XSETID is smaller than the target stream top item",
            ));
        }
        if entries_added.is_some_and(|added| added < log.len() as u64) {
            return Err(Error::of(
                "ERR The entries_added specified in XSETID is smaller than the target stream length",
            ));
        }
    }
    log.last_id = last_id;
    log.entries_added = entries_added.unwrap_or(log.entries_added);
    if max_deleted_id != StreamId::ZERO {
        log.max_deleted_id = max_deleted_id;
    }
    ctx.replied();
    ctx.changed(key, Class::StreamGroup, "xsetid");
    Ok(Reply::OK)
}
