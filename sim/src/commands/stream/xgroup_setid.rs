//! XGROUP SETID key group id | $ [ENTRIESREAD count]: sets a group's read position.

use bytes::Bytes;

use super::{
    groups::{NO_STREAM, entries_read, no_group_of_key, parse_entries_read},
    ids::id_or_end,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    generation::Feature,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xgroup|setid",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Sets how far a group has read.",
    arity: -5,
    flags: Flags::WRITE,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, name) = (&args[2], &args[3]);
    let mut read = None;
    let (options, rest) = args[5..].as_chunks::<2>();
    for [option, count] in options {
        if !option.eq_ignore_ascii_case(b"entriesread") {
            return Err(Error::subcommand("xgroup", &args[1]));
        }
        read = parse_entries_read(count)?;
    }
    if !rest.is_empty() {
        return Err(Error::subcommand("xgroup", &args[1]));
    }
    let generation = ctx.node.config.generation;
    let Stream { log, groups } = ctx.modify::<Stream>(key)?.ok_or(NO_STREAM)?;
    let group = groups.get_mut(name).ok_or_else(|| no_group_of_key(key, name))?;
    let options_max = usize::from(generation.has(Feature::StreamCounters));
    if options.len() > options_max {
        return Err(Error::subcommand("xgroup", &args[1]));
    }
    group.last_id = if args[4] == "$" { log.last_id } else { id_or_end(&args[4], 0)? };
    group.entries_read = entries_read(read, log.entries_added, generation);
    ctx.replied();
    ctx.changed(key, Class::StreamGroup, "xgroup-setid");
    Ok(Reply::OK)
}
