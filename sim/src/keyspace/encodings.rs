//! How large a collection may be in Redis's compact encodings.

/// The limits beyond which a collection changes to its general encoding, with the defaults of `redis-server` 7.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encodings {
    /// `hash-max-listpack-entries`: fields of a hash.
    pub hash_entries_max: usize,
    /// `hash-max-listpack-value`: bytes of a field or value of a hash.
    pub hash_value_max: usize,
}

impl Default for Encodings {
    fn default() -> Encodings {
        Encodings { hash_entries_max: 512, hash_value_max: 64 }
    }
}
