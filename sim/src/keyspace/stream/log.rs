//! The entries of a stream and its counters.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{EntryRef, Node, StreamId, radix};
use crate::keyspace::Encodings;

/// Maximum bytes of an entry and of a stream node.
const BYTES_MAX: usize = 1 << 30;

/// Threshold for trimming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// MAXLEN: keeps this many of the latest entries.
    Newest(usize),
    /// MINID: keeps the entries from this id on.
    From(StreamId),
}

/// The limits of XTRIM, or of a trim by XADD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// The entries to keep: a number of the latest, or all from an id on.
    pub keep: Keep,
    /// Removes only whole stream nodes, which is faster.
    pub approximate: bool,
    /// LIMIT: removes at most this many entries; 0 for any number.
    pub limit: usize,
}

/// The entries, and counters that outlive them. Each node's key is the id of its first entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    nodes: BTreeMap<StreamId, Node>,
    len: usize,
    /// Bytes of all nodes.
    bytes: usize,
    /// Highest id ever given to an entry.
    pub last_id: StreamId,
    /// Id of the first entry; 0-0 without entries.
    pub first_id: StreamId,
    /// Highest id that was deleted by name.
    pub max_deleted_id: StreamId,
    /// Number of entries ever added.
    pub entries_added: u64,
}

impl Log {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the log has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes that the entries use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the nodes, in order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> + DoubleEndedIterator {
        self.nodes.values()
    }

    /// Returns the number of nodes of the radix tree in which Redis keeps the stream nodes.
    pub fn tree_nodes(&self) -> usize {
        radix::nodes(&self.nodes.keys().copied().collect::<Vec<_>>())
    }

    /// Returns true if the strings of an entry exceed the maximum of a stream node.
    pub fn is_too_large(pairs: &[Bytes]) -> bool {
        pairs.iter().map(Bytes::len).sum::<usize>() > BYTES_MAX
    }

    /// Adds an entry. Its id must be higher than all before it, and it must not be too large.
    ///
    /// # Panics
    /// If the id is not higher than the last one.
    pub fn append(&mut self, id: StreamId, pairs: &[Bytes], encodings: &Encodings) {
        assert!(id > self.last_id, "ids only grow");
        let len: usize = pairs.iter().map(Bytes::len).sum();
        let bytes_max = match encodings.stream_node_bytes_max {
            0 => BYTES_MAX,
            max => max.min(BYTES_MAX),
        };
        let entries_max = encodings.stream_node_entries_max;
        // XSETID may have set the last id back, which leaves a node of deleted entries at a higher
        // id. Remove it.
        while let Some(last) = self.nodes.last_entry().filter(|last| *last.key() >= id) {
            self.bytes -= last.remove().bytes();
        }
        let has_room =
            |node: &Node| node.bytes() + len < bytes_max && (entries_max == 0 || node.len() < entries_max);
        let base =
            self.nodes.last_key_value().filter(|(_, node)| has_room(node)).map_or(id, |(base, _)| *base);
        let node = self.nodes.entry(base).or_insert_with(|| Node::new(id, pairs.iter().step_by(2)));
        let before = if node.is_empty() { 0 } else { node.bytes() };
        node.push(id, pairs, false);
        self.bytes += node.bytes() - before;
        self.len += 1;
        self.entries_added = self.entries_added.wrapping_add(1);
        self.last_id = id;
        if self.len == 1 {
            self.first_id = id;
        }
    }

    /// Appends a stream node of a snapshot. Returns false if the node is empty or does not follow
    /// the others.
    pub fn push_node(&mut self, node: Node) -> bool {
        let follows = self.nodes.last_key_value().is_none_or(|(last, _)| *last < node.base());
        if !follows || (!self.is_empty() && self.top_id() >= node.base()) || node.is_empty() {
            return false;
        }
        self.len += node.live();
        self.bytes += node.bytes();
        self.nodes.insert(node.base(), node);
        true
    }

    /// Returns the entries from one id to another, both included.
    pub fn range(&self, start: StreamId, end: StreamId) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        let first = self.nodes.range(..=start).next_back().map_or(start, |(base, _)| *base);
        // A range that ends before it begins is empty.
        let last = end.max(first);
        let end = if start <= end { end } else { StreamId::ZERO };
        self.nodes.range(first..=last).flat_map(move |(_, node)| node.range(start, end))
    }

    /// Returns all entries.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        self.range(StreamId::ZERO, StreamId::MAX)
    }

    /// Returns the entry of an id.
    pub fn get(&self, id: StreamId) -> Option<EntryRef<'_>> {
        self.range(id, id).next()
    }

    /// Returns the highest id of an entry; 0-0 without entries.
    pub fn top_id(&self) -> StreamId {
        self.iter().next_back().map_or(StreamId::ZERO, |entry| entry.id())
    }

    /// Deletes an entry; returns true if it existed.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some((&base, node)) = self.nodes.range_mut(..=id).next_back() else { return false };
        let before = node.bytes();
        if !node.delete(id) {
            return false;
        }
        self.bytes -= before;
        if node.live() == 0 {
            self.nodes.remove(&base);
        } else {
            self.bytes += node.bytes();
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        if self.is_empty() || id == self.first_id {
            self.find_first();
        }
        true
    }

    /// Removes entries from the front; returns their number.
    pub fn trim(&mut self, trim: &Trim) -> usize {
        let mut gone = 0;
        while let Some(mut first) = self.nodes.first_entry() {
            let node = first.get_mut();
            let live = node.live();
            let surplus = match trim.keep {
                Keep::Newest(kept) => self.len.saturating_sub(kept),
                Keep::From(_) => live,
            };
            let at_end = matches!(trim.keep, Keep::Newest(_)) && surplus == 0;
            if at_end || (trim.limit != 0 && gone + live > trim.limit) {
                break;
            }
            let whole = match trim.keep {
                Keep::Newest(_) => surplus >= live,
                Keep::From(id) => node.last_id() < id,
            };
            self.bytes -= node.bytes();
            if whole {
                first.remove();
                (self.len, gone) = (self.len - live, gone + live);
                continue;
            }
            if !trim.approximate {
                let before = if let Keep::From(id) = trim.keep { id } else { StreamId::MAX };
                let deleted = node.delete_front(surplus, before);
                (self.len, gone) = (self.len - deleted, gone + deleted);
            }
            self.bytes += node.bytes();
            break;
        }
        if gone > 0 {
            self.find_first();
        }
        gone
    }

    /// Updates the id of the first entry.
    pub fn find_first(&mut self) {
        let first = self.iter().next().map(|entry| entry.id());
        self.first_id = first.unwrap_or_default();
    }

    /// Returns true if an entry after `id` may have been deleted by name.
    pub fn has_gap_after(&self, id: StreamId) -> bool {
        let deleted = self.max_deleted_id;
        !self.is_empty() && deleted != StreamId::ZERO && self.first_id <= deleted && id <= deleted
    }

    /// Returns the number of entries ever added up to `id`. `None` if only counting would tell.
    pub fn position(&self, id: StreamId) -> Option<i64> {
        let added = self.entries_added as i64;
        if added == 0 {
            return Some(0);
        }
        if (self.is_empty() && id <= self.last_id) || id == self.last_id {
            return Some(added);
        }
        if id > self.last_id {
            return None;
        }
        let whole = self.max_deleted_id == StreamId::ZERO || self.max_deleted_id < self.first_id;
        let before_first = added.wrapping_sub(self.len as i64);
        match id.cmp(&self.first_id) {
            std::cmp::Ordering::Less if whole => Some(before_first),
            std::cmp::Ordering::Equal if whole => Some(before_first.wrapping_add(1)),
            _ => None,
        }
    }
}
