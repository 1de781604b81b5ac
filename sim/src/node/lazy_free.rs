//! Lazy freeing: finds the values that a server frees in the background. Here every value is freed
//! immediately, and such values are only counted.

use bytes::Bytes;

use crate::{
    durability::rdb,
    keyspace::{Stream, Value},
};

/// A value of more pieces than this is freed in the background.
const PIECES_MAX: usize = 64;

/// Returns the command that tells replicas and the append-only file of a deletion: UNLINK if the
/// server frees values of this kind of deletion lazily.
pub fn deletion(lazily: bool, key: &Bytes) -> Vec<Bytes> {
    vec![Bytes::from_static(if lazily { b"UNLINK" } else { b"DEL" }), key.clone()]
}

/// Returns true if a value has so many pieces that a server frees it in the background when it may.
pub fn is_worth_background(value: &Value, list_node_size: i32) -> bool {
    pieces(value, list_node_size) > PIECES_MAX
}

/// Estimates the number of pieces of memory that a value consists of. A listpack or a string is one
/// piece.
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

/// Assumes that every group has as many pending entries as the first, instead of counting them.
fn stream_pieces(stream: &Stream) -> usize {
    let first = stream.groups.values().next().map_or(0, |group| 1 + group.pending().len());
    stream.log.tree_nodes().saturating_add(stream.groups.len().saturating_mul(first))
}
