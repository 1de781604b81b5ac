//! Lazy freeing: which values a server frees in the background. Here all are freed at once, and
//! only counted.

use crate::{
    durability::rdb,
    keyspace::{Stream, Value},
};

/// With more pieces than this a value is worth the trouble.
const PIECES_MAX: usize = 64;

/// Whether a value is made of so many pieces that a server frees it in the background, where it
/// may.
pub fn is_worth_background(value: &Value, list_node_size: i32) -> bool {
    pieces(value, list_node_size) > PIECES_MAX
}

/// About how many pieces of memory a value is made of. What lies in one listpack or one string is
/// one.
fn pieces(value: &Value, list_node_size: i32) -> usize {
    match value {
        Value::List(list) if list.len() > PIECES_MAX => rdb::nodes(list, list_node_size).len(),
        Value::Set(set) if value.encoding() == "hashtable" => set.len(),
        Value::Hash(hash) if value.encoding() == "hashtable" => hash.len(),
        Value::SortedSet(set) if value.encoding() == "skiplist" => set.len(),
        Value::Stream(stream) => stream_pieces(stream),
        _ => 1,
    }
}

/// Every group is taken to have as many pending entries as the first.
fn stream_pieces(stream: &Stream) -> usize {
    let first = stream.groups.values().next().map_or(0, |group| 1 + group.pending().len());
    stream.log.tree_nodes().saturating_add(stream.groups.len().saturating_mul(first))
}
