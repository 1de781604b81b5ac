//! Size limits of Redis's compact encodings of collections.

/// The limits beyond which a collection changes to its general encoding, with the defaults of
/// `redis-server` 7.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encodings {
    /// `hash-max-listpack-entries`: fields of a hash.
    pub hash_entries_max: usize,
    /// `hash-max-listpack-value`: bytes of a field or value of a hash.
    pub hash_value_max: usize,
    /// `set-max-intset-entries`: members of a set of integers.
    pub set_integers_max: usize,
    /// `zset-max-listpack-entries`: members of a sorted set.
    pub sorted_set_entries_max: usize,
    /// `zset-max-listpack-value`: bytes of a member of a sorted set.
    pub sorted_set_value_max: usize,
    /// `hll-sparse-max-bytes`: bytes of a HyperLogLog in its sparse encoding.
    pub hyperloglog_sparse_max: usize,
    /// `stream-node-max-entries`: entries in a node of a stream; 0 for any number.
    pub stream_node_entries_max: usize,
    /// `stream-node-max-bytes`: bytes of a node of a stream; 0 for any number.
    pub stream_node_bytes_max: usize,
}

impl Default for Encodings {
    fn default() -> Encodings {
        Encodings {
            hash_entries_max: 512,
            hash_value_max: 64,
            set_integers_max: 512,
            sorted_set_entries_max: 128,
            sorted_set_value_max: 64,
            hyperloglog_sparse_max: 3000,
            stream_node_entries_max: 100,
            stream_node_bytes_max: 4096,
        }
    }
}
