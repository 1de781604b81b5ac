//! The estimated memory use of keys and values, for `maxmemory`, INFO and MEMORY USAGE.
//!
//! The figures equal those of `redis-server` 7.0 on a 64-bit machine with its own allocator. They
//! are the same on every machine and in every build. The sizes below are derived from the replies
//! of MEMORY USAGE for values of many kinds and sizes. The size of a collection is estimated from a
//! few of its elements, so that the cost does not grow with it. The estimate omits state that a
//! value does not show: a table has two arrays while it is resized, an appended string has spare
//! capacity, and the heights of skiplist nodes are random.

use super::{Entry, Hash, List, Set, SortedSet, Value, listpack};
use crate::resp::format_double;

/// Bytes of the header that every value has in Redis.
pub const OBJECT: usize = 16;
/// Entry of a table: key, value, next.
pub(super) const TABLE_ENTRY: usize = 24;
/// Position in a table's array.
pub(super) const SLOT: usize = 8;
/// Header of a table.
pub(super) const TABLE: usize = 56;
/// Header of a list, and of one of its nodes.
pub(super) const LIST: usize = 48;
pub(super) const LIST_NODE: usize = 32;
/// Maximum bytes of a list node in the default configuration.
pub(super) const LIST_NODE_MAX: usize = 8192;
/// Headers of a sorted set in its general encoding, with the first node, which has all levels.
pub(super) const SKIPLIST: usize = 16 + 32 + 640;
/// A node of a skiplist, with as many levels as nodes have on average.
const SKIPLIST_NODE: usize = 53;
/// The header of an embedded string (EMBSTR).
const EMBEDDED: usize = OBJECT + 3 + 1;
/// Number of elements sampled in a table, as MEMORY USAGE does by default.
pub(super) const SAMPLES: usize = 5;
/// Number of elements sampled in a compact encoding.
const PACKED_SAMPLES: usize = 32;

/// Returns the size class of an allocation: steps of 16, and from 128 on four steps to each
/// doubling.
pub(super) fn allocated(bytes: usize) -> usize {
    match bytes {
        0..=8 => bytes.div_ceil(8) * 8,
        9..=128 => bytes.div_ceil(16) * 16,
        _ => bytes.checked_next_power_of_two().map_or(bytes, |above| bytes.next_multiple_of(above / 8)),
    }
}

/// Returns the bytes of a hash table with `len` entries, without their contents and its own header.
pub fn table_memory(len: usize) -> usize {
    if len == 0 { 0 } else { len * TABLE_ENTRY + slots(len) }
}

/// Returns the bytes of an embedded string, without those of its object.
pub fn embedded_memory(len: usize) -> usize {
    allocated(EMBEDDED + len) - OBJECT
}

/// Returns the bytes of a string of length `len`, with its header.
pub fn text_memory(len: usize) -> usize {
    text(len)
}

fn text(len: usize) -> usize {
    allocated(len.saturating_add(string_header(len) + 1))
}

/// Returns the bytes in front of a string of this length.
pub(super) fn string_header(len: usize) -> usize {
    match len {
        0..32 => 1,
        32..256 => 3,
        256..65_536 => 5,
        _ => 9,
    }
}

/// Bytes of the array of a hash table with `len` entries.
pub(super) fn slots(len: usize) -> usize {
    len.next_power_of_two().max(4) * SLOT
}

impl Entry {
    /// Returns the bytes of the key and its value, as MEMORY USAGE reports them.
    pub fn usage(&self, key: &[u8]) -> usize {
        text(key.len()) + TABLE_ENTRY + self.value.memory()
    }

    /// Returns the bytes of key and value, plus their entries in the tables of the database.
    pub fn memory(&self, key: &[u8]) -> usize {
        let expiry = if self.expires_ms().is_some() { TABLE_ENTRY + SLOT } else { 0 };
        self.usage(key).saturating_add(SLOT + expiry)
    }
}

impl Value {
    /// Returns the bytes of the value, as an estimate.
    pub fn memory(&self) -> usize {
        match self {
            Value::String(string) => match string.encoding() {
                "int" => OBJECT,
                "embstr" => OBJECT + embedded_memory(string.bytes().len()),
                _ => OBJECT + text(string.bytes().len()),
            },
            Value::Hash(hash) => OBJECT + of_hash(hash),
            Value::List(list) => OBJECT + of_list(list),
            Value::Set(set) => OBJECT + of_set(set),
            Value::SortedSet(set) => OBJECT + of_sorted_set(set),
            Value::Stream(stream) => OBJECT + stream.memory(),
        }
    }
}

fn of_hash(hash: &Hash) -> usize {
    if hash.is_compact() {
        let sizes = hash.sample(PACKED_SAMPLES).map(|(field, value)| packed(field) + packed(value));
        return allocated(listpack::FRAME.saturating_add(extrapolated(hash.len(), sizes)));
    }
    let sizes =
        hash.sample(SAMPLES).map(|(field, value)| text(field.len()) + text(value.len()) + TABLE_ENTRY);
    (TABLE + slots(hash.len())).saturating_add(extrapolated(hash.len(), sizes))
}

fn of_set(set: &Set) -> usize {
    if let Some(width) = set.integer_width() {
        return allocated(set.len().saturating_mul(width).saturating_add(8));
    }
    let sizes = set.sample_lengths(SAMPLES).map(|len| text(len) + TABLE_ENTRY);
    (TABLE + slots(set.len())).saturating_add(extrapolated(set.len(), sizes))
}

fn of_sorted_set(set: &SortedSet) -> usize {
    if set.encoding() == "listpack" {
        let score = |score: f64| packed(format_double(score));
        let sizes = set.iter().take(PACKED_SAMPLES).map(|(of, member)| packed(member) + score(of));
        return allocated(listpack::FRAME.saturating_add(extrapolated(set.len(), sizes)));
    }
    let sizes = set.iter().take(SAMPLES).map(|(_, member)| text(member.len()) + TABLE_ENTRY + SKIPLIST_NODE);
    (SKIPLIST + TABLE + slots(set.len())).saturating_add(extrapolated(set.len(), sizes))
}

/// Fills the nodes of a list one after the other. An element too large for a node gets its own.
fn of_list(list: &List) -> usize {
    let bytes = extrapolated(list.len(), list.iter().take(PACKED_SAMPLES).map(packed));
    let each = bytes.div_ceil(list.len().max(1)).max(1);
    let per_node = (LIST_NODE_MAX.saturating_sub(listpack::FRAME) / each).max(1);
    let node = |elements: usize| match elements {
        0 => 0,
        _ => LIST_NODE + allocated(elements.saturating_mul(each).saturating_add(listpack::FRAME)),
    };
    let full = (list.len() / per_node).saturating_mul(node(per_node));
    LIST + full.saturating_add(node(list.len() % per_node))
}

/// Bytes of a string in a compact encoding.
fn packed(text: impl AsRef<[u8]>) -> usize {
    listpack::text_len(text.as_ref())
}

/// Estimates the bytes of `len` elements from the sizes of the first few.
pub(super) fn extrapolated(len: usize, sizes: impl Iterator<Item = usize>) -> usize {
    let (count, sum) =
        sizes.fold((0usize, 0usize), |(count, sum), size| (count + 1, sum.saturating_add(size)));
    if count >= len { sum } else { (sum as u128 * len as u128 / count.max(1) as u128) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row was measured on `redis-server` with strings of that length: the allocation holds
    /// the string, a header of three bytes and a terminating zero.
    #[test]
    fn an_allocator_has_steps() {
        let rows = [
            (0, 0),
            (1, 8),
            (9, 16),
            (17, 32),
            (49, 64),
            (104, 112),
            (128, 128),
            (129, 160),
            (254, 256),
            (262, 320),
            (1006, 1024),
            (5006, 5120),
            (70_010, 81_920),
        ];
        for (bytes, expected) in rows {
            assert_eq!(allocated(bytes), expected, "{bytes}");
        }
    }
}
