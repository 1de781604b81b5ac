//! Writes values as the bytes that the servers of the node's generation write for them.

use super::{Listpack, Output, PACKED_SETS, intset, kind, stream, ziplist};
use crate::{
    generation::Generation,
    keyspace::{Hash, List, Set, Value},
    resp::format_double,
};

/// Bytes that a server assumes as the overhead of an element of a list, when it checks for room for
/// one more.
const ELEMENT_OVERHEAD: usize = 8;
/// The number that marks a node of a list as a listpack.
const PACKED: u64 = 2;
/// `set-max-listpack-entries` and `set-max-listpack-value`: a larger set, or one with a longer
/// member, is no listpack.
const SET_PACKED_MAX: usize = 128;
const MEMBER_PACKED_MAX: usize = 64;

/// Returns the type byte of a value.
pub(super) fn kind(out: &Output, value: &Value) -> u8 {
    let (is_oldest, is_newer) = (has_ziplists(out), out.generation.rdb_version() >= PACKED_SETS);
    match value {
        Value::String(_) => kind::STRING,
        Value::List(_) if is_oldest => kind::LIST_QUICKLIST,
        Value::List(_) => kind::LIST_QUICKLIST2,
        Value::Set(set) if set.integers().is_some() => kind::SET_INTSET,
        Value::Set(set) if is_packed_set(out, set) => kind::SET_LISTPACK,
        Value::Set(_) => kind::SET,
        Value::Hash(hash) if hash.has_times() => match (out.generation.is_valkey(), hash.is_compact()) {
            (true, _) => kind::HASH_2,
            (false, true) => kind::HASH_LISTPACK_EX,
            (false, false) => kind::HASH_METADATA,
        },
        Value::Hash(hash) if hash.is_compact() && is_oldest => kind::HASH_ZIPLIST,
        Value::Hash(hash) if hash.is_compact() => kind::HASH_LISTPACK,
        Value::Hash(_) => kind::HASH,
        Value::SortedSet(set) if set.is_compact() && is_oldest => kind::ZSET_ZIPLIST,
        Value::SortedSet(set) if set.is_compact() => kind::ZSET_LISTPACK,
        Value::SortedSet(_) => kind::ZSET,
        Value::Stream(_) if is_oldest => kind::STREAM_LISTPACKS,
        Value::Stream(_) if is_newer => kind::STREAM_LISTPACKS_3,
        Value::Stream(_) => kind::STREAM_LISTPACKS_2,
    }
}

/// Returns true if compact values are written as ziplists, the encoding before listpacks.
fn has_ziplists(out: &Output) -> bool {
    out.generation == Generation::Redis62
}

/// Returns true if a set that is not of integers is written as a listpack.
fn is_packed_set(out: &Output, set: &Set) -> bool {
    out.generation.rdb_version() >= PACKED_SETS && is_small(set)
}

/// Returns true if a set is small enough for a listpack. A server leaves a set that once was larger
/// in the other encoding; both read the same.
fn is_small(set: &Set) -> bool {
    set.len() <= SET_PACKED_MAX && set.iter().all(|member| member.len() <= MEMBER_PACKED_MAX)
}

/// Returns true if a list fits into one node, or a set that is not of integers into a listpack.
pub fn is_packed(value: &Value, node_size: i32) -> bool {
    match value {
        Value::Set(set) => set.integers().is_none() && is_small(set),
        Value::List(list) => {
            let mut node = Listpack::default();
            for element in list.iter() {
                if !has_room(&node, element.len(), node_size) {
                    return false;
                }
                node.push(element);
            }
            true
        }
        _ => false,
    }
}

/// Writes a compact value.
fn packed(out: &mut Output, pack: Listpack) {
    let bytes = pack.finish();
    let bytes = if has_ziplists(out) { ziplist::of_listpack(&bytes) } else { bytes };
    out.string(&bytes);
}

/// Writes a value, without the type byte that [`kind()`] returns.
pub(super) fn value(out: &mut Output, value: &Value) {
    match value {
        Value::String(string) => out.string(string.bytes()),
        Value::List(elements) => list(out, elements),
        Value::Set(set) => match set.integers() {
            Some(integers) => out.string(&intset::write(integers)),
            None if is_packed_set(out, set) => {
                let mut pack = Listpack::default();
                set.iter().for_each(|member| pack.push(&member));
                packed(out, pack);
            }
            None => {
                out.length(set.len() as u64);
                set.iter().for_each(|member| out.string(&member));
            }
        },
        Value::Hash(hash) if hash.has_times() => timed_hash(out, hash),
        Value::Hash(hash) if hash.is_compact() => {
            let mut pack = Listpack::default();
            for (field, value) in hash.iter() {
                pack.push(field);
                pack.push(value);
            }
            packed(out, pack);
        }
        Value::Hash(hash) => {
            out.length(hash.len() as u64);
            for (field, value) in hash.iter() {
                out.string(field);
                out.string(value);
            }
        }
        Value::SortedSet(set) if set.is_compact() => {
            let mut pack = Listpack::default();
            for (score, member) in set.iter() {
                pack.push(member);
                match whole(score) {
                    Some(n) => pack.push_integer(n),
                    None => pack.push(format_double(score).as_bytes()),
                }
            }
            packed(out, pack);
        }
        Value::SortedSet(set) => {
            out.length(set.len() as u64);
            // Write from the last to the first, so that the loader always inserts at the front.
            for (score, member) in set.range(0..set.len(), true) {
                out.string(member);
                out.raw(&score.to_le_bytes());
            }
        }
        Value::Stream(stream) => {
            let kind = kind(out, value);
            stream::write(out, stream, kind);
        }
    }
}

/// Writes a hash whose fields have a time to live, in milliseconds. Valkey writes -1 for none.
/// Redis writes 0 for none, and in the general encoding the distance from the first time, plus one.
fn timed_hash(out: &mut Output, hash: &Hash) {
    if out.generation.is_valkey() {
        out.length(hash.len() as u64);
        for (field, value) in hash.iter() {
            out.string(field);
            out.string(value);
            out.raw(&hash.time_of(field).unwrap_or(-1).to_le_bytes());
        }
        return;
    }
    let first_ms = hash.first_time_ms().unwrap_or(0);
    out.raw(&first_ms.to_le_bytes());
    if hash.is_compact() {
        let mut pack = Listpack::default();
        for (field, value) in hash.iter() {
            pack.push(field);
            pack.push(value);
            pack.push_integer(hash.time_of(field).unwrap_or(0));
        }
        return out.string(&pack.finish());
    }
    out.length(hash.len() as u64);
    for (field, value) in hash.iter() {
        out.length(hash.time_of(field).map_or(0, |when_ms| when_ms.abs_diff(first_ms) + 1));
        out.string(field);
        out.string(value);
    }
}

/// Returns a score as an integer if it is one, within the half of the range that a server trusts.
fn whole(score: f64) -> Option<i64> {
    let limit = (i64::MAX / 2) as f64;
    (score.fract() == 0.0 && score.abs() <= limit).then_some(score as i64)
}

fn list(out: &mut Output, list: &List) {
    let nodes = nodes(list, out.list_node_size);
    out.length(nodes.len() as u64);
    for node in nodes {
        if !has_ziplists(out) {
            out.length(PACKED);
        }
        packed(out, node);
    }
}

/// Returns the nodes of a list that was filled from the head on. A server may split the list
/// elsewhere after other pushes; both read the same.
pub fn nodes(list: &List, node_size: i32) -> Vec<Listpack> {
    let mut nodes = vec![Listpack::default()];
    for element in list.iter() {
        let node = nodes.last().expect("there is one from the start");
        if node.count() > 0 && !has_room(node, element.len(), node_size) {
            nodes.push(Listpack::default());
        }
        nodes.last_mut().expect("there is one from the start").push(element);
    }
    nodes
}

/// Returns true if a node has room for one more element by `list-max-listpack-size`: a number of
/// elements, or from -1 to -5 a size from 4 to 64 kilobytes.
fn has_room(node: &Listpack, len: usize, node_size: i32) -> bool {
    let size = node.size() + len + ELEMENT_OVERHEAD;
    match usize::try_from(node_size) {
        Ok(count) => size <= 8192 && node.count() < count,
        Err(_) => size <= 2048 << node_size.unsigned_abs().min(5),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::keyspace::End;

    /// Pushes `elements` elements of `len` bytes each, and returns the number of elements in each
    /// node.
    fn counts(elements: usize, len: usize, node_size: i32) -> Vec<usize> {
        let mut list = List::default();
        (0..elements).for_each(|_| list.push(End::Right, Bytes::from(vec![b'x'; len])));
        nodes(&list, node_size).iter().map(Listpack::count).collect()
    }

    #[test]
    fn a_list_is_cut_into_nodes_by_number_or_by_size() {
        for (elements, len, node_size, expected) in [
            (5, 1, 2, vec![2, 2, 1]),
            (2, 1, 2, vec![2]),
            // With a number, a node is still limited to 8 kilobytes: an element takes 3002 bytes
            // and some overhead.
            (5, 3000, 128, vec![2, 2, 1]),
            // -1 is 4 kilobytes, -2 is 8, and a value below -5 is like -5, which is 64.
            (4, 1000, -1, vec![4]),
            (5, 1000, -1, vec![4, 1]),
            (9, 1000, -2, vec![8, 1]),
            (70, 1000, -5, vec![65, 5]),
            (70, 1000, -9, vec![65, 5]),
            // An element that is larger than a node gets its own.
            (2, 5000, -1, vec![1, 1]),
        ] {
            assert_eq!(counts(elements, len, node_size), expected, "{elements} of {len}: {node_size}");
        }
    }
}
