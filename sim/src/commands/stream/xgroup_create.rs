//! XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD count]: makes a group.

use bytes::Bytes;

use super::{
    groups::{NO_STREAM, entries_read, parse_entries_read},
    ids::id,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    generation::Feature,
    keyspace::{self, Stream, StreamId},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup|create",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Creates a consumer group.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

/// Number of arguments with all options.
const LEN_MAX: usize = 8;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name) = (&args[2], &args[3]);
    let (mut makes_stream, mut read) = (false, None);
    let mut options = &args[5..];
    let generation = ctx.node.config.generation;
    let has_counters = generation.has(Feature::StreamCounters);
    while let [option, rest @ ..] = options {
        options = match (&option.to_ascii_lowercase()[..], rest) {
            (b"mkstream", _) => {
                makes_stream = true;
                rest
            }
            (b"entriesread", [count, rest @ ..]) if has_counters => {
                read = parse_entries_read(count)?;
                rest
            }
            _ => return Err(Error::subcommand("xgroup", &args[1])),
        };
    }
    let stream = ctx.modify::<Stream>(key)?;
    let is_there = stream.is_some();
    let last_id = stream.map_or(StreamId::ZERO, |stream| stream.log.last_id);
    if !is_there && !makes_stream {
        return Err(NO_STREAM);
    }
    if args.len() > LEN_MAX {
        return Err(Error::subcommand("xgroup", &args[1]));
    }
    let from = if args[4] == "$" { last_id } else { id(&args[4], 0)? };
    let stream = ctx.modify_or_create::<Stream>(key)?;
    let read = entries_read(read, stream.log.entries_added, generation);
    if stream.groups.contains_key(name) {
        return Err(Error::of("BUSYGROUP Consumer Group name already exists"));
    }
    stream.groups.insert(Bytes::copy_from_slice(name), keyspace::Group::new(from, read));
    if !is_there {
        ctx.signal(key);
    }
    ctx.replied();
    ctx.changed(key, Class::StreamGroup, "xgroup-create");
    Ok(Reply::OK)
}
