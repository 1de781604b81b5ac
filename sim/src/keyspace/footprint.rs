//! MEMORY USAGE of each generation of servers.
//!
//! Redis 7.0 is `memory.rs`. The other sizes are derived from the replies of MEMORY USAGE of each
//! server for values of many kinds and sizes. Redis 6.2 counts the bytes of compact encodings and
//! short strings, not those of their allocations. From Redis 8.2 and Valkey 8.1 on, the key is part
//! of the value's object, a short string as well. As in `memory.rs`, a few elements stand for all.

use super::{
    Entry, Hash, List, Set, SortedSet, Str, Value, integer, listpack,
    memory::{
        LIST, LIST_NODE, LIST_NODE_MAX, OBJECT, SAMPLES, SKIPLIST, SLOT, TABLE, TABLE_ENTRY, extrapolated,
        slots, string_header,
    },
};
use crate::{generation::Generation, resp::format_double};

/// Maximum number of elements of a compact encoding that are looked at.
const PACKED_MAX: usize = 512;

/// The sizes of a generation.
struct Sizes {
    generation: Generation,
    /// Returns the bytes of the allocation for this many.
    allocated: fn(usize) -> usize,
    /// Header of a table.
    table: usize,
    /// Node of a skiplist, with as many levels as nodes have on average.
    skiplist_node: usize,
}

impl Sizes {
    fn of(generation: Generation) -> Sizes {
        let (allocated, table, skiplist_node): (fn(usize) -> usize, _, _) = match generation {
            Generation::Redis62 => (by_eight, 96, 53),
            Generation::Redis70 | Generation::Redis82 => (by_eight, TABLE, 33),
            Generation::Valkey81 => (by_libc, 48, 44),
            Generation::Valkey91 => (by_libc, 48, 34),
        };
        Sizes { generation, allocated, table, skiplist_node }
    }

    /// Returns the allocation of a string of this length, with its header.
    fn text(&self, len: usize) -> usize {
        (self.allocated)(text_len(len))
    }

    /// Returns the bytes of an array of positions for `len` elements. Valkey has buckets of seven.
    fn array(&self, len: usize) -> usize {
        match self.generation.is_valkey() {
            true => len.div_ceil(7).next_power_of_two() * 8 * SLOT,
            false => slots(len),
        }
    }

    /// Returns the bytes of a table's entry besides its texts.
    fn entry(&self) -> usize {
        if self.generation.is_valkey() { 0 } else { TABLE_ENTRY }
    }

    /// Returns the bytes of a compact encoding, from those of its elements in a list pack.
    fn packed(&self, elements: usize) -> usize {
        (self.allocated)(listpack::FRAME.saturating_add(elements))
    }
}

/// The size classes of the allocator that Redis brings: steps of 8 up to 64, of 16 up to 128, then
/// four to each doubling.
fn by_eight(bytes: usize) -> usize {
    match bytes {
        0..=64 => bytes.max(8).next_multiple_of(8),
        65..=128 => bytes.next_multiple_of(16),
        _ => bytes.checked_next_power_of_two().map_or(bytes, |above| bytes.next_multiple_of(above / 8)),
    }
}

/// The usable bytes of an allocation of the C library: 8 less than a multiple of 16, and of whole
/// pages for a large one.
fn by_libc(bytes: usize) -> usize {
    match bytes {
        0..=24 => 24,
        25..131_072 => (bytes + 8).next_multiple_of(16) - 8,
        _ => bytes.saturating_add(16).checked_next_multiple_of(4096).map_or(bytes, |pages| pages - 16),
    }
}

/// Returns the bytes of a string with its header and its terminating zero.
fn text_len(len: usize) -> usize {
    len.saturating_add(string_header(len) + 1)
}

impl Entry {
    /// Returns the bytes of the key and its value, as MEMORY USAGE of a generation reports them.
    pub fn footprint(&self, key: &[u8], generation: Generation) -> usize {
        let sizes = Sizes::of(generation);
        match generation {
            Generation::Redis70 => self.usage(key),
            Generation::Redis62 => {
                let of_key = sizes.text(key.len()) + TABLE_ENTRY;
                of_key.saturating_add(OBJECT).saturating_add(old(&self.value, &sizes))
            }
            _ => {
                // A byte in front of the key has the length of its header.
                let key_len = 1 + text_len(key.len());
                let expiry = if self.expires_ms().is_some() { SLOT } else { 0 };
                let object = OBJECT + expiry + key_len;
                if let Value::String(string) = &self.value {
                    return string_in(string, key.len(), (object, expiry), &sizes);
                }
                (sizes.allocated)(object).saturating_add(new(&self.value, &sizes))
            }
        }
    }
}

/// Returns the bytes of a string, with its object of `object` bytes.
fn string_in(
    string: &Str,
    key_len: usize,
    (object, expiry): (usize, usize),
    Sizes { generation, allocated, .. }: &Sizes,
) -> usize {
    if string.encoding() == "int" {
        return allocated(object);
    }
    let len = string.bytes().len();
    // A string beside its key has a header of three bytes whatever its length.
    let beside = object + len + 4;
    let least = OBJECT + key_len + 3 + len + 4;
    let (is_beside, size) = match generation {
        // The object needs no pointer to a string beside it, but has room for one.
        Generation::Valkey91 => (beside - SLOT - expiry <= 128, (beside - SLOT).max(object)),
        // The limit counts a short header for the key, but for keys with a time to live.
        Generation::Valkey81 if expiry > 0 => (least <= 64 && beside <= 72, beside),
        Generation::Valkey81 => (least <= 64, beside),
        _ => (least + expiry <= 64, beside),
    };
    match is_beside {
        true => allocated(size),
        false => allocated(object).saturating_add(allocated(text_len(len))),
    }
}

/// Returns the bytes of a collection besides its object.
fn new(value: &Value, sizes: &Sizes) -> usize {
    match value {
        Value::String(_) => 0,
        Value::Hash(hash) if hash.is_compact() => sizes.packed(packed_hash(hash, listpack::text_len)),
        Value::Hash(hash) if sizes.generation.is_valkey() => {
            // A field and a short value share an allocation.
            let each = hash.sample(SAMPLES).map(|(field, value)| {
                let (field, value) = (text_len(field.len()), text_len(value.len()));
                match field + value <= 64 {
                    true => by_libc(field + value),
                    false => by_libc(field + SLOT) + by_libc(value),
                }
            });
            (sizes.table + sizes.array(hash.len())).saturating_add(extrapolated(hash.len(), each))
        }
        Value::Hash(hash) => table_of_hash(hash, sizes),
        Value::List(list) => of_list(list, sizes),
        Value::Set(set) => match set.integer_width() {
            Some(width) => (sizes.allocated)(set.len().saturating_mul(width).saturating_add(8)),
            None if is_small(set) => sizes.packed(set.iter().map(|member| listpack::text_len(&member)).sum()),
            None => table_of_set(set, sizes),
        },
        Value::SortedSet(set) if set.is_compact() => sizes.packed(packed_set(set, listpack::text_len)),
        Value::SortedSet(set) => skiplist(set, sizes),
        Value::Stream(stream) => stream.memory(),
    }
}

/// Returns the bytes of a value in Redis 6.2 besides its object. Compact encodings count without
/// the rest of their allocations.
fn old(value: &Value, sizes: &Sizes) -> usize {
    /// Bytes of a zip list besides its elements.
    const FRAME: usize = 11;
    match value {
        Value::String(string) => match string.encoding() {
            "int" => 0,
            "embstr" => string.bytes().len() + 2,
            _ => sizes.text(string.bytes().len()),
        },
        Value::Hash(hash) if hash.is_compact() => FRAME.saturating_add(packed_hash(hash, zipped)),
        Value::Hash(hash) => table_of_hash(hash, sizes),
        Value::List(list) => {
            let bytes = extrapolated(list.len(), list.iter().take(PACKED_MAX).map(|text| zipped(text)));
            let nodes = bytes.div_ceil(LIST_NODE_MAX - FRAME);
            (LIST - 8).saturating_add(bytes).saturating_add(nodes * (LIST_NODE + FRAME))
        }
        Value::Set(set) => match set.integer_width() {
            Some(width) => set.len().saturating_mul(width).saturating_add(8),
            None => table_of_set(set, sizes),
        },
        Value::SortedSet(set) if set.is_compact() => FRAME.saturating_add(packed_set(set, zipped)),
        Value::SortedSet(set) => skiplist(set, sizes),
        Value::Stream(stream) => stream.memory(),
    }
}

/// Returns the bytes of a string in a zip list, with the length of the element before it.
fn zipped(text: &[u8]) -> usize {
    let previous = if text.len() < 250 { 1 } else { 5 };
    if text.len() < 32
        && let Some(value) = integer(text)
    {
        return previous
            + match value {
                0..=12 => 1,
                -128..128 => 2,
                -32_768..32_768 => 3,
                -8_388_608..8_388_608 => 4,
                -2_147_483_648..2_147_483_648 => 5,
                _ => 9,
            };
    }
    let header = match text.len() {
        0..64 => 1,
        64..16_384 => 2,
        _ => 5,
    };
    previous + header + text.len()
}

fn packed_hash(hash: &Hash, packed: fn(&[u8]) -> usize) -> usize {
    let sizes = hash.sample(PACKED_MAX).map(|(field, value)| packed(field) + packed(value));
    extrapolated(hash.len(), sizes)
}

fn packed_set(set: &SortedSet, packed: fn(&[u8]) -> usize) -> usize {
    let score = |score: f64| packed(format_double(score).as_bytes());
    let sizes = set.iter().take(PACKED_MAX).map(|(of, member)| packed(member) + score(of));
    extrapolated(set.len(), sizes)
}

fn table_of_hash(hash: &Hash, sizes: &Sizes) -> usize {
    let each = hash
        .sample(SAMPLES)
        .map(|(field, value)| sizes.text(field.len()) + sizes.text(value.len()) + sizes.entry());
    (sizes.table + sizes.array(hash.len())).saturating_add(extrapolated(hash.len(), each))
}

fn table_of_set(set: &Set, sizes: &Sizes) -> usize {
    // The C library's allocations are a little larger than asked for, on average.
    let more = if sizes.generation.is_valkey() { 4 } else { 0 };
    let each = set.sample_lengths(SAMPLES).map(|len| sizes.text(len) + sizes.entry() + more);
    (sizes.table + sizes.array(set.len())).saturating_add(extrapolated(set.len(), each))
}

/// Returns true for a set of texts that newer servers keep in a list pack, by the default options.
fn is_small(set: &Set) -> bool {
    set.len() <= 128 && set.iter().all(|member| member.len() <= 64)
}

fn skiplist(set: &SortedSet, sizes: &Sizes) -> usize {
    let node = sizes.skiplist_node + sizes.entry();
    let each = set.iter().take(SAMPLES).map(|(_, member)| sizes.text(member.len()) + node);
    let headers = SKIPLIST + sizes.table + sizes.array(set.len());
    headers.saturating_add(extrapolated(set.len(), each))
}

/// A list that fits into one node has no further headers.
fn of_list(list: &List, sizes: &Sizes) -> usize {
    let bytes = extrapolated(list.len(), list.iter().take(PACKED_MAX).map(|text| listpack::text_len(text)));
    if bytes.saturating_add(listpack::FRAME) <= LIST_NODE_MAX {
        return sizes.packed(bytes);
    }
    let each = bytes.div_ceil(list.len().max(1)).max(1);
    let per_node = (LIST_NODE_MAX.saturating_sub(listpack::FRAME) / each).max(1);
    let node = |elements: usize| match elements {
        0 => 0,
        _ => (sizes.allocated)(LIST_NODE) + sizes.packed(elements.saturating_mul(each)),
    };
    let full = (list.len() / per_node).saturating_mul(node(per_node));
    LIST.saturating_add(full).saturating_add(node(list.len() % per_node))
}
