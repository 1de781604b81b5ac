//! A stream node: the entries that Redis would hold in one listpack. Approximate trimming removes
//! whole nodes, so clients can see their boundaries.

use bytes::{BufMut, Bytes, BytesMut};

use super::StreamId;
use crate::keyspace::listpack::{FRAME, integer_len, text_len};

/// Strings in one buffer: their ends, then their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Strings {
    count: usize,
    bytes: Bytes,
}

impl Strings {
    fn new<'a>(strings: impl Iterator<Item = &'a Bytes> + Clone) -> Strings {
        let count = strings.clone().count();
        let len: usize = strings.clone().map(|string| string.len()).sum();
        let mut bytes = BytesMut::with_capacity(count * 4 + len);
        let mut end = 0;
        for string in strings.clone() {
            end += string.len();
            bytes.put_u32_le(u32::try_from(end).expect("an entry has less than a gigabyte"));
        }
        strings.for_each(|string| bytes.extend_from_slice(string));
        Strings { count, bytes: bytes.freeze() }
    }

    /// Returns the end of a string, relative to the start of the first one.
    fn end(&self, at: usize) -> usize {
        let end = &self.bytes[at * 4..at * 4 + 4];
        u32::from_le_bytes(end.try_into().expect("four bytes were taken")) as usize
    }

    fn range(&self, at: usize) -> std::ops::Range<usize> {
        let start = if at == 0 { 0 } else { self.end(at - 1) };
        let data = self.count * 4;
        data + start..data + self.end(at)
    }

    fn slice(&self, at: usize) -> &[u8] {
        &self.bytes[self.range(at)]
    }

    /// Returns a string that shares the buffer.
    fn get(&self, at: usize) -> Bytes {
        self.bytes.slice(self.range(at))
    }
}

/// An entry of a node. A deleted entry stays until its node is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    id: StreamId,
    deleted: bool,
    /// Set if the entry has the fields of the node's first entry. `strings` then holds only the
    /// values.
    same_fields: bool,
    strings: Strings,
}

/// The entries of one node, ordered by id. Only deleted entries may be out of order: XSETID can set
/// the last id back before them, and later entries are appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The fields of the first entry.
    fields: Strings,
    entries: Vec<Entry>,
    live: usize,
    /// True if the deleted entries are in order as well.
    sorted: bool,
    /// Bytes of the listpack without its frame and its two counts.
    weight: usize,
    /// The entries' ids are relative to this id.
    base: StreamId,
}

/// A view of an entry.
#[derive(Debug, Clone, Copy)]
pub struct EntryRef<'a> {
    node: &'a Node,
    entry: &'a Entry,
}

impl<'a> EntryRef<'a> {
    /// Returns the id, such as `1700000000000-0`.
    pub fn id(&self) -> StreamId {
        self.entry.id
    }

    /// Returns true if the entry was deleted.
    pub fn is_deleted(&self) -> bool {
        self.entry.deleted
    }

    /// Returns true if the entry has the fields of its node's first entry.
    pub fn has_same_fields(&self) -> bool {
        self.entry.same_fields
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        if self.entry.same_fields { self.node.fields.count } else { self.entry.strings.count / 2 }
    }

    /// Returns true if the entry has no fields. Such an entry comes only from a snapshot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the fields and values. They share the memory of the entry.
    pub fn pairs(self) -> impl Iterator<Item = (Bytes, Bytes)> + 'a {
        let (fields, strings) = (&self.node.fields, &self.entry.strings);
        (0..self.len()).map(move |at| {
            if self.entry.same_fields {
                (fields.get(at), strings.get(at))
            } else {
                (strings.get(2 * at), strings.get(2 * at + 1))
            }
        })
    }
}

impl Node {
    /// Makes a node without entries. `fields` are the expected fields of its entries.
    pub fn new<'a>(base: StreamId, fields: impl Iterator<Item = &'a Bytes> + Clone) -> Node {
        let fields = Strings::new(fields);
        let strings = (0..fields.count).map(|at| text_len(fields.slice(at))).sum::<usize>();
        let weight = integer_len(fields.count as i64) + strings + integer_len(0);
        Node { fields, entries: Vec::new(), live: 0, sorted: true, weight, base }
    }

    /// Returns the node's key in the tree.
    pub fn base(&self) -> StreamId {
        self.base
    }

    /// Returns the fields that most entries have.
    pub fn fields(&self) -> impl Iterator<Item = Bytes> + '_ {
        (0..self.fields.count).map(|at| self.fields.get(at))
    }

    /// Returns the number of entries that are not deleted.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Returns the number of entries, including deleted ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the node holds no entry, not even a deleted one.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of the listpack that Redis would use.
    pub fn bytes(&self) -> usize {
        let dead = self.len() - self.live;
        FRAME + integer_len(self.live as i64) + integer_len(dead as i64) + self.weight
    }

    /// Returns the id of the last entry, deleted or not.
    pub fn last_id(&self) -> StreamId {
        self.entries.last().map_or(self.base, |entry| entry.id)
    }

    /// Appends an entry with alternating fields and values.
    pub fn push(&mut self, id: StreamId, pairs: &[Bytes], deleted: bool) {
        let count = pairs.len() / 2;
        let same_fields = count == self.fields.count
            && pairs.iter().step_by(2).enumerate().all(|(at, field)| *field == self.fields.slice(at));
        let strings = if same_fields {
            Strings::new(pairs.iter().skip(1).step_by(2))
        } else {
            self.weight += integer_len(count as i64);
            Strings::new(pairs.iter())
        };
        // An entry has flags, two id parts, a field count if the fields differ, its strings, and
        // the number of these elements.
        let elements = 3 + strings.count + usize::from(!same_fields);
        let id_len = integer_len(id.ms.wrapping_sub(self.base.ms) as i64)
            + integer_len(id.seq.wrapping_sub(self.base.seq) as i64);
        let text = (0..strings.count).map(|at| text_len(strings.slice(at))).sum::<usize>();
        self.weight += integer_len(0) + id_len + text + integer_len(elements as i64);
        self.live += usize::from(!deleted);
        self.sorted &= self.entries.last().is_none_or(|last| last.id < id);
        self.entries.push(Entry { id, deleted, same_fields, strings });
    }

    /// Marks the entry of an id as deleted; returns true if it existed and was not deleted yet.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let (from, to) = self.about(id, id);
        let entry = self.entries[from..to].iter_mut().find(|entry| entry.id == id && !entry.deleted);
        let Some(entry) = entry else { return false };
        entry.deleted = true;
        self.live -= 1;
        true
    }

    /// Marks up to `count` entries before `before` as deleted, from the front on. Returns their
    /// number.
    pub fn delete_front(&mut self, count: usize, before: StreamId) -> usize {
        let live =
            self.entries.iter_mut().take_while(|entry| entry.id < before).filter(|entry| !entry.deleted);
        let deleted = live.take(count).map(|entry| entry.deleted = true).count();
        self.live -= deleted;
        deleted
    }

    /// Returns all entries, including deleted ones.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        self.entries.iter().map(|entry| EntryRef { node: self, entry })
    }

    /// Returns the entries from one id to another that are not deleted.
    pub fn range(&self, start: StreamId, end: StreamId) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        let (from, to) = self.about(start, end);
        let wanted = move |entry: &&Entry| !entry.deleted && (start..=end).contains(&entry.id);
        self.entries[from..to].iter().filter(wanted).map(|entry| EntryRef { node: self, entry })
    }

    /// Returns index bounds that enclose the entries from `start` to `end`, perhaps with others.
    fn about(&self, start: StreamId, end: StreamId) -> (usize, usize) {
        if !self.sorted {
            return (0, self.len());
        }
        let from = self.entries.partition_point(|entry| entry.id < start);
        (from, self.entries.partition_point(|entry| entry.id <= end).max(from))
    }
}
