//! Streams: nodes of entries as listpacks, the counters, and the groups with their pending entries.
//!
//! A listpack of entries begins with the number of live entries, the number of deleted ones, and
//! the fields of the first entry. Each entry has flags, its id as a distance from the node's, its
//! strings, and the number of its elements.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Input, Item, Listpack, Output, RdbError, kind, listpack};
use crate::keyspace::{Group, Log, Node, Stream, StreamId};

const DAMAGED: RdbError = RdbError::Damaged("a stream");
/// The flags of an entry.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;
/// Stands for an unknown number of entries that a group has read.
const UNKNOWN: u64 = u64::MAX;
/// Stands for the time of a consumer that no entry was pending for.
const NEVER: i64 = -1;

/// Writes a stream in one of the three formats; the oldest one contains least.
pub(super) fn write(out: &mut Output, Stream { log, groups }: &Stream, kind: u8) {
    let is_oldest = kind == kind::STREAM_LISTPACKS;
    out.length(log.nodes().len() as u64);
    for node in log.nodes() {
        out.string(&node.base().to_bytes());
        out.string(&packed(node));
    }
    out.length(log.len() as u64);
    parts(out, log.last_id);
    if !is_oldest {
        parts(out, log.first_id);
        parts(out, log.max_deleted_id);
        out.length(log.entries_added);
    }
    out.length(groups.len() as u64);
    for (name, group) in groups {
        out.string(name);
        parts(out, group.last_id);
        if !is_oldest {
            out.length(group.entries_read.map_or(UNKNOWN, |read| read as u64));
        }
        out.length(group.pending().len() as u64);
        for (id, pending) in group.pending() {
            out.raw(&id.to_bytes());
            out.raw(&pending.delivered_ms.to_le_bytes());
            out.length(pending.deliveries);
        }
        out.length(group.consumers().len() as u64);
        for (name, consumer) in group.consumers() {
            out.string(name);
            out.raw(&consumer.seen_ms.to_le_bytes());
            if kind == kind::STREAM_LISTPACKS_3 {
                out.raw(&consumer.active_ms.unwrap_or(NEVER).to_le_bytes());
            }
            out.length(consumer.pending().len() as u64);
            consumer.pending().iter().for_each(|id| out.raw(&id.to_bytes()));
        }
    }
}

fn parts(out: &mut Output, id: StreamId) {
    out.length(id.ms);
    out.length(id.seq);
}

fn packed(node: &Node) -> Vec<u8> {
    let (base, fields): (StreamId, Vec<Bytes>) = (node.base(), node.fields().collect());
    let mut pack = Listpack::default();
    pack.push_integer(node.live() as i64);
    pack.push_integer((node.len() - node.live()) as i64);
    pack.push_integer(fields.len() as i64);
    fields.iter().for_each(|field| pack.push(field));
    pack.push_integer(0);
    for entry in node.all() {
        let start = pack.count();
        let (deleted, same) = (entry.is_deleted(), entry.has_same_fields());
        pack.push_integer(if deleted { DELETED } else { 0 } | if same { SAME_FIELDS } else { 0 });
        pack.push_integer(entry.id().ms.wrapping_sub(base.ms) as i64);
        pack.push_integer(entry.id().seq.wrapping_sub(base.seq) as i64);
        if !same {
            pack.push_integer(entry.len() as i64);
        }
        for (field, value) in entry.pairs() {
            if !same {
                pack.push(&field);
            }
            pack.push(&value);
        }
        pack.push_integer((pack.count() - start) as i64);
    }
    pack.finish()
}

/// Reads a stream in one of the three formats; the oldest one contains least.
pub(super) fn read(input: &mut Input<'_>, kind: u8) -> Result<Stream, RdbError> {
    let is_oldest = kind == kind::STREAM_LISTPACKS;
    let mut log = Log::default();
    for _ in 0..input.length()? {
        let base = input.string()?;
        let base = StreamId::from_bytes(base[..].try_into().map_err(|_| DAMAGED)?);
        if !log.push_node(unpacked(base, &input.string()?)?) {
            return Err(DAMAGED);
        }
    }
    let len = input.length()?;
    log.last_id = id(input)?;
    if is_oldest {
        log.find_first();
        log.entries_added = len as u64;
    } else {
        (log.first_id, log.max_deleted_id) = (id(input)?, id(input)?);
        log.entries_added = input.number()?;
    }
    if len != log.len() || log.top_id() > log.last_id {
        return Err(DAMAGED);
    }
    let mut groups = BTreeMap::new();
    for _ in 0..input.length()? {
        let name = input.string()?;
        let last_id = id(input)?;
        let entries_read = if is_oldest {
            log.position(last_id)
        } else {
            Some(input.number()?).filter(|read| *read != UNKNOWN).map(|read| read as i64)
        };
        let group = group(input, kind, last_id, entries_read)?;
        if groups.insert(name, group).is_some() {
            return Err(DAMAGED);
        }
    }
    Ok(Stream { log, groups })
}

fn id(input: &mut Input<'_>) -> Result<StreamId, RdbError> {
    Ok(StreamId { ms: input.number()?, seq: input.number()? })
}

fn raw_id(input: &mut Input<'_>) -> Result<StreamId, RdbError> {
    Ok(StreamId::from_bytes(input.array("the id of an entry")?))
}

fn group(
    input: &mut Input<'_>,
    kind: u8,
    last_id: StreamId,
    entries_read: Option<i64>,
) -> Result<Group, RdbError> {
    let mut group = Group::new(last_id, entries_read);
    let mut pending = BTreeMap::new();
    for _ in 0..input.length()? {
        let id = raw_id(input)?;
        let delivered_ms = i64::from_le_bytes(input.array("a time")?);
        if pending.insert(id, (delivered_ms, input.number()?)).is_some() {
            return Err(DAMAGED);
        }
    }
    for _ in 0..input.length()? {
        let name = input.string()?;
        let seen_ms = i64::from_le_bytes(input.array("a time")?);
        let active_ms = match kind {
            kind::STREAM_LISTPACKS_3 => Some(i64::from_le_bytes(input.array("a time")?)),
            _ => None,
        };
        if !group.create_consumer(&name, seen_ms) {
            return Err(DAMAGED);
        }
        for _ in 0..input.length()? {
            let id = raw_id(input)?;
            // Each id is pending once, for one consumer.
            let (delivered_ms, deliveries) = pending.remove(&id).ok_or(DAMAGED)?;
            group.assign(id, &name, delivered_ms, deliveries);
        }
        group.activate(&name, active_ms.filter(|at| *at != NEVER));
    }
    if pending.is_empty() { Ok(group) } else { Err(DAMAGED) }
}

/// The elements of a node, read one after the other.
struct Items<'a>(std::vec::IntoIter<Item<'a>>);

impl Items<'_> {
    fn integer(&mut self) -> Result<i64, RdbError> {
        self.0.next().and_then(Item::integer).ok_or(DAMAGED)
    }

    fn count(&mut self) -> Result<usize, RdbError> {
        usize::try_from(self.integer()?).map_err(|_| DAMAGED)
    }

    fn string(&mut self) -> Result<Bytes, RdbError> {
        self.0.next().map(Item::bytes).ok_or(DAMAGED)
    }

    fn strings(&mut self, count: usize) -> Result<Vec<Bytes>, RdbError> {
        (0..count).map(|_| self.string()).collect()
    }
}

fn unpacked(base: StreamId, bytes: &[u8]) -> Result<Node, RdbError> {
    let mut items = Items(listpack(bytes)?.into_iter());
    let (live, dead, width) = (items.count()?, items.count()?, items.count()?);
    let fields = items.strings(width)?;
    if items.integer()? != 0 {
        return Err(DAMAGED);
    }
    let mut node = Node::new(base, fields.iter());
    let mut top = None;
    for _ in 0..live.checked_add(dead).ok_or(DAMAGED)? {
        let before = items.0.len();
        let flags = items.integer()?;
        let ms = base.ms.wrapping_add(items.integer()? as u64);
        let id = StreamId { ms, seq: base.seq.wrapping_add(items.integer()? as u64) };
        let pairs = if flags & SAME_FIELDS != 0 {
            let values = items.strings(width)?;
            fields.iter().cloned().zip(values).flat_map(|(field, value)| [field, value]).collect()
        } else {
            let strings = items.count()?.checked_mul(2).ok_or(DAMAGED)?;
            items.strings(strings)?
        };
        let elements = before - items.0.len();
        // Deleted entries may have ids in any order.
        let deleted = flags & DELETED != 0;
        let in_order = deleted || top.map_or(id >= base, |top| id > top);
        if !in_order || items.count()? != elements {
            return Err(DAMAGED);
        }
        top = if deleted { top } else { Some(id) };
        node.push(id, &pairs, deleted);
    }
    if node.live() == live && items.0.len() == 0 { Ok(node) } else { Err(DAMAGED) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, keyspace::Encodings};

    fn words(words: &[&str]) -> Vec<Bytes> {
        words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    /// A stream with every kind of entry and of group.
    fn sample() -> Stream {
        let encodings = Encodings { stream_node_entries_max: 3, ..Encodings::default() };
        let mut stream = Stream::default();
        let log = &mut stream.log;
        let long = "x".repeat(5000);
        for (at, pairs) in [
            &["f", "1"][..],
            &["f", "-300", "g", "70000"],
            &["f", "text"],
            &["f", &long],
            &["", ""],
            &["h", "9223372036854775807", "f", "-9223372036854775808"],
        ]
        .into_iter()
        .enumerate()
        {
            log.append(StreamId { ms: 1 << (8 * at), seq: 7 * at as u64 }, &words(pairs), &encodings);
        }
        log.delete(StreamId { ms: 1 << 8, seq: 7 });
        let mut group = Group::new(StreamId { ms: 5, seq: 5 }, Some(2));
        for name in words(&["one", "two"]) {
            group.create_consumer(&name, 1234);
        }
        group.assign(StreamId { ms: 1, seq: 0 }, b"one", 99, 3);
        group.assign(StreamId { ms: 256, seq: 7 }, b"two", i64::MAX, u64::MAX);
        stream.groups.insert("g".into(), group);
        stream.groups.insert("empty".into(), Group::new(StreamId::MAX, None));
        stream
    }

    fn written(stream: &Stream, kind: u8) -> Vec<u8> {
        let mut out = Output::new(&Config::default());
        write(&mut out, stream, kind);
        out.into_bytes()
    }

    #[test]
    fn what_is_written_is_read_and_cut_anywhere_it_is_refused() {
        for kind in [kind::STREAM_LISTPACKS_2, kind::STREAM_LISTPACKS_3] {
            for stream in [sample(), Stream::default()] {
                let bytes = written(&stream, kind);
                let mut input = Input::new(&bytes);
                assert_eq!(read(&mut input, kind), Ok(stream));
                assert_eq!(input.left(), 0);
                for end in 0..bytes.len() {
                    assert!(read(&mut Input::new(&bytes[..end]), kind).is_err(), "cut at {end}");
                }
            }
        }
    }

    /// The oldest format has neither the counters of the log nor those of the groups: a reader
    /// derives them from the entries.
    #[test]
    fn the_oldest_format_keeps_the_entries_and_who_has_read_them() {
        let stream = sample();
        let bytes = written(&stream, kind::STREAM_LISTPACKS);
        let mut input = Input::new(&bytes);
        let again = read(&mut input, kind::STREAM_LISTPACKS).expect("a stream");
        assert_eq!(input.left(), 0);
        assert_eq!(again.log.nodes().len(), stream.log.nodes().len());
        assert_eq!((again.log.len(), again.log.last_id), (stream.log.len(), stream.log.last_id));
        for (name, group) in &stream.groups {
            let read = &again.groups[name];
            assert_eq!((read.last_id, read.pending()), (group.last_id, group.pending()));
            assert_eq!(read.consumers(), group.consumers());
        }
    }

    #[test]
    fn no_byte_turned_over_makes_a_panic() {
        let bytes = written(&sample(), kind::STREAM_LISTPACKS_3);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                for kind in [kind::STREAM_LISTPACKS, kind::STREAM_LISTPACKS_2, kind::STREAM_LISTPACKS_3] {
                    let _ = read(&mut Input::new(&damaged), kind);
                }
            }
        }
    }

    #[test]
    fn a_node_weighs_what_its_listpack_has_bytes() {
        for node in sample().log.nodes() {
            assert_eq!(node.bytes(), packed(node).len());
        }
    }
}
