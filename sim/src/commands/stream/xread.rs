//! XREAD [COUNT count] [BLOCK ms] STREAMS key [key ...] id [id ...]: the entries after an id of
//! each stream; with BLOCK waits for one.

use bytes::Bytes;

use super::{
    answering::{by_stream, entry},
    ids::{id, word},
    reading::{Words, keys},
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, dispatch::note_reads},
    generation::Feature,
    keyspace::{Stream, StreamId, Typed},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xread",
    group: Group::Stream,
    since: "5.0.0",
    summary: "The entries after an id of each stream, waiting for one.",
    arity: -4,
    flags: Flags::READONLY.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS).union(Flags::NOTES_OWN_READS),
    keys: Keys::Found(keys),
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let answered = read(ctx, args);
    if names_streams(&args[1..]) {
        note_reads(ctx, &SPEC, args);
    }
    answered
}

/// Returns true if STREAMS follows valid options of XREAD, with as many keys as ids.
fn names_streams(mut options: &[Bytes]) -> bool {
    loop {
        options = match options {
            [word, rest @ ..] if word.eq_ignore_ascii_case(b"streams") => {
                return !rest.is_empty() && rest.len().is_multiple_of(2);
            }
            [word, _, rest @ ..]
                if ["block", "count"].iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())) =>
            {
                rest
            }
            _ => return false,
        }
    }
}

fn read(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let words = Words::parse(ctx, args, false)?;
    if let Some(key) = ctx.ready.clone() {
        return resume(ctx, args, &words, key);
    }
    let has_last = ctx.node.config.generation.has(Feature::LastEntry);
    let mut after = Vec::with_capacity(words.ids.len());
    for (key, text) in words.keys.iter().zip(words.ids) {
        let stream = ctx.read::<Stream>(key)?;
        let last_id = stream.map_or(StreamId::ZERO, |stream| stream.log.last_id);
        let last_entry = stream.and_then(|stream| stream.log.iter().next_back()).map(|entry| entry.id());
        after.push(match &text[..] {
            b"$" => last_id,
            // The last entry itself, or those that come.
            b"+" if has_last => last_entry.and_then(StreamId::previous).unwrap_or(last_id),
            b">" => {
                return Err(Error::of(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> \
                     option.",
                ));
            }
            text => id(text, 0)?,
        });
    }
    let mut read = Vec::new();
    for (key, after) in words.keys.iter().zip(&after) {
        let Some(Stream { log, .. }) = ctx.read::<Stream>(key)? else { continue };
        let Some(from) = after.next() else { continue };
        let entries: Vec<Reply> = log.range(from, StreamId::MAX).take(words.count()).map(entry).collect();
        if !entries.is_empty() {
            read.push((key.clone(), entries));
        }
    }
    if !read.is_empty() {
        return Ok(by_stream(ctx, read));
    }
    let Some(wait) = words.wait else { return Ok(Reply::NullArray) };
    // `$` means the end of the stream now, also when the command runs again later.
    let ids = args.len() - after.len();
    let resolved: Vec<Bytes> = args[..ids].iter().cloned().chain(after.iter().map(word)).collect();
    Ok(ctx.wait(&resolved, words.keys, wait, Reply::NullArray))
}

/// Continues after a wait, when one of the streams may have new entries.
fn resume(ctx: &mut Ctx<'_>, args: &[Bytes], words: &Words<'_>, key: Bytes) -> Result<Reply, Error> {
    let at = words.keys.iter().position(|waited| *waited == key).unwrap_or(0);
    let after = id(&words.ids[at], 0)?;
    let count = words.count_after_wait(ctx.node.config.generation);
    // A blocked client does no lookup: no hit, no miss, and no `keymiss` event.
    let value = ctx.lookup_write(&key).map(|entry| Stream::of(&entry.value).ok_or(Error::WRONG_TYPE));
    let stream = value.transpose()?.filter(|stream| stream.log.last_id > after);
    let from = stream.zip(after.next());
    let Some((stream, from)) = from else {
        let wait = words.wait.ok_or(Error::SYNTAX)?;
        return Ok(ctx.wait(args, words.keys, wait, Reply::NullArray));
    };
    let entries: Vec<Reply> = stream.log.range(from, StreamId::MAX).take(count).map(entry).collect();
    // Servers before Redis 7.2 reply without entries if all are gone again.
    if entries.is_empty() && !ctx.node.config.generation.is_before_7_2() {
        let wait = words.wait.ok_or(Error::SYNTAX)?;
        return Ok(ctx.wait(args, words.keys, wait, Reply::NullArray));
    }
    Ok(by_stream(ctx, vec![(key, entries)]))
}
