//! Writes all data as commands that create it: a base without RDB preamble (`aof-use-rdb-preamble
//! no`).

use bytes::Bytes;

use crate::{
    keyspace::{Db, Entry, Group, Hash, Stream, Value},
    replication::encode,
    resp::format_double,
    script::Libraries,
};

/// The maximum number of elements that one command adds.
const ELEMENTS_MAX: usize = 64;

/// Returns the commands that create `dbs` and `libraries`.
pub fn base(dbs: &[Db], libraries: &Libraries) -> Vec<u8> {
    let mut out = Vec::new();
    for library in libraries.iter() {
        command(&mut out, &[b"FUNCTION", b"LOAD", &library.code]);
    }
    for (number, db) in dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        command(&mut out, &[b"SELECT", number.to_string().as_bytes()]);
        for (key, entry) in db.entries().iter() {
            entry_commands(&mut out, key, entry);
        }
    }
    out
}

/// Returns the commands that create some keys of a database, whose number is 0. Keys that do not
/// exist are left out.
pub fn keys_as_commands(db: &Db, keys: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::new();
    command(&mut out, &[b"SELECT", b"0"]);
    for (key, entry) in keys.iter().filter_map(|key| Some((key, db.get(key)?))) {
        entry_commands(&mut out, key, entry);
    }
    out
}

fn entry_commands(out: &mut Vec<u8>, key: &[u8], entry: &Entry) {
    value(out, key, &entry.value);
    if let Some(expires_ms) = entry.expires_ms() {
        command(out, &[b"PEXPIREAT", key, expires_ms.to_string().as_bytes()]);
    }
}

fn value(out: &mut Vec<u8>, key: &[u8], value: &Value) {
    match value {
        Value::String(string) => command(out, &[b"SET", key, string.bytes()]),
        Value::List(list) => many(out, "RPUSH", key, list.iter().map(|element| [element.to_bytes()])),
        Value::Set(set) => many(out, "SADD", key, set.iter().map(|member| [member.into_bytes()])),
        Value::Hash(hash) => {
            let pairs = hash.iter().map(|(field, value)| [field.to_bytes(), value.to_bytes()]);
            many(out, "HMSET", key, pairs);
            times(out, key, hash);
        }
        Value::SortedSet(set) => {
            let members =
                set.iter().map(|(score, member)| [Bytes::from(format_double(score)), member.to_bytes()]);
            many(out, "ZADD", key, members);
        }
        Value::Stream(stream) => self::stream(out, key, stream),
    }
}

/// Writes the expiry times of fields. Of those with the same time, the last one set comes first.
fn times(out: &mut Vec<u8>, key: &[u8], hash: &Hash) {
    if !hash.has_times() {
        return;
    }
    let fields: Vec<_> = hash.iter().filter_map(|(field, _)| Some((field, hash.time_of(field)?))).collect();
    for (field, when_ms) in fields.into_iter().rev() {
        let when = when_ms.to_string();
        command(out, &[b"HPEXPIREAT", key, when.as_bytes(), b"FIELDS", b"1", field]);
    }
}

fn many<const N: usize>(
    out: &mut Vec<u8>,
    name: &str,
    key: &[u8],
    elements: impl Iterator<Item = [Bytes; N]>,
) {
    let start = || vec![Bytes::copy_from_slice(name.as_bytes()), Bytes::copy_from_slice(key)];
    let mut args = start();
    for element in elements {
        args.extend(element);
        if args.len() >= 2 + N * ELEMENTS_MAX {
            encode(&std::mem::replace(&mut args, start()), out);
        }
    }
    if args.len() > 2 {
        encode(&args, out);
    }
}

fn stream(out: &mut Vec<u8>, key: &[u8], Stream { log, groups }: &Stream) {
    if log.is_empty() {
        // Adding and trimming an entry leaves an empty stream. No entry may have the id 0-0.
        command(out, &[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
    }
    for entry in log.iter() {
        let id = entry.id().to_string();
        let mut args = vec![Bytes::from("XADD"), Bytes::copy_from_slice(key), Bytes::from(id)];
        args.extend(entry.pairs().flat_map(|(field, value)| [field, value]));
        encode(&args, out);
    }
    let [last, deleted] = [log.last_id, log.max_deleted_id].map(|id| id.to_string());
    let added = log.entries_added.to_string();
    let (last, added, deleted) = (last.as_bytes(), added.as_bytes(), deleted.as_bytes());
    command(out, &[b"XSETID", key, last, b"ENTRIESADDED", added, b"MAXDELETEDID", deleted]);
    for (name, group) in groups {
        self::group(out, key, name, group);
    }
}

fn group(out: &mut Vec<u8>, key: &[u8], name: &[u8], group: &Group) {
    let read = group.entries_read.unwrap_or(-1).to_string();
    let last = group.last_id.to_string();
    command(out, &[b"XGROUP", b"CREATE", key, name, last.as_bytes(), b"ENTRIESREAD", read.as_bytes()]);
    for (consumer, state) in group.consumers() {
        command(out, &[b"XGROUP", b"CREATECONSUMER", key, name, consumer]);
        for id in state.pending() {
            let Some(pending) = group.pending().get(id) else { continue };
            let [id, time, count] =
                [id.to_string(), pending.delivered_ms.to_string(), pending.deliveries.to_string()];
            let (id, time, count) = (id.as_bytes(), time.as_bytes(), count.as_bytes());
            let how: [&[u8]; 6] = [b"TIME", time, b"RETRYCOUNT", count, b"JUSTID", b"FORCE"];
            command(out, &[&[b"XCLAIM", key, name, consumer, b"0", id], &how[..]].concat());
        }
    }
}

fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    encode(words, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis splits a rewritten value into commands of 64 elements, so that no single one blocks
    /// the server that reads it.
    #[test]
    fn a_command_adds_64_elements_at_most() {
        for (elements, commands) in [(1, 1), (63, 1), (64, 1), (65, 2), (128, 2), (129, 3)] {
            let mut out = Vec::new();
            let pairs = (0..elements).map(|n| [Bytes::from(format!("f{n}")), Bytes::from("v")]);
            many(&mut out, "HMSET", b"key", pairs);
            let text = String::from_utf8(out).expect("plain text");
            assert_eq!(text.matches("HMSET").count(), commands, "{elements}");
            assert_eq!(text.matches("\r\nf").count(), elements, "{elements}");
            let longest = format!("*{}\r\n", 2 + 2 * elements.min(ELEMENTS_MAX));
            assert!(text.starts_with(&longest), "{elements}: {text}");
        }
    }
}
