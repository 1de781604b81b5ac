//! How much memory keys and values are reckoned to use, for `maxmemory`, INFO and MEMORY USAGE.
//!
//! The figures follow the layout of `redis-server` on a 64-bit machine closely enough for limits to bite at about the same
//! amount of data, and they are the same on every machine and in every build. A collection is reckoned from a few of
//! its elements, so that the cost does not grow with it.

use super::{Entry, Value};

/// Table entry, object header and string headers of a key and its value.
const PER_KEY: usize = 48;
/// A key's place in the table of those that expire.
const PER_EXPIRY: usize = 40;
/// Header of a collection.
const PER_COLLECTION: usize = 48;
/// Table entry and string headers of an element in a general encoding.
const PER_ELEMENT: usize = 64;
/// Lengths around an element in a compact encoding.
const PER_PACKED: usize = 4;
/// Elements that are looked at, as MEMORY USAGE does by default.
const SAMPLES: usize = 5;

/// Allocators hand out memory in steps.
fn rounded(bytes: usize) -> usize {
    bytes.div_ceil(8) * 8
}

impl Entry {
    /// Bytes of the key, its value and its expiry.
    pub fn memory(&self, key: &[u8]) -> usize {
        let expiry = if self.expires_ms().is_some() { PER_EXPIRY } else { 0 };
        PER_KEY + rounded(key.len()) + expiry + self.value.memory()
    }
}

impl Value {
    /// Bytes of the value.
    pub fn memory(&self) -> usize {
        match self {
            Value::String(string) if string.encoding() == "int" => 0,
            Value::String(string) => rounded(string.bytes().len()),
            Value::Hash(hash) => {
                let sizes = hash.sample(SAMPLES).map(|(field, value)| field.len() + value.len());
                collection(hash.len(), 2, hash.encoding() == "listpack", sizes)
            }
            // Nodes of a list are compact encodings, whatever its length.
            Value::List(list) => collection(list.len(), 1, true, list.iter().map(|element| element.len())),
            Value::Set(set) => {
                collection(set.len(), 0, set.encoding() == "intset", set.sample_lengths(SAMPLES))
            }
            Value::SortedSet(set) => {
                let sizes = set.iter().map(|(_, member)| member.len() + size_of::<f64>());
                collection(set.len(), 2, set.encoding() == "listpack", sizes)
            }
            Value::Stream(stream) => PER_COLLECTION + rounded(stream.memory()),
        }
    }
}

/// Bytes of a collection of `len` elements, each of so many strings, whose sizes begin with `sizes`.
fn collection(len: usize, strings: usize, packed: bool, sizes: impl Iterator<Item = usize>) -> usize {
    let (count, sum) =
        sizes.take(SAMPLES).fold((0usize, 0usize), |(count, sum), size| (count + 1, sum + size));
    let average = sum.div_ceil(count.max(1));
    let each = if packed { average + strings * PER_PACKED } else { rounded(average) + PER_ELEMENT };
    PER_COLLECTION.saturating_add(len.saturating_mul(each))
}
