//! Intentional bugs of a node.

/// Intentional bugs, with which tests prove that a checker notices them. A node without any behaves
/// like Redis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mutations {
    /// A control for experiments, not a bug of Redis: the node computes its wall clock from its
    /// start time and its monotonic clock, so that no operator can step it.
    pub wall_from_monotonic: bool,
    /// A control for experiments: replicas get relative TTLs, as before Redis 7, instead of the
    /// times of expiry.
    pub replicate_relative_ttl: bool,
    /// An intentional bug: a key expires at the millisecond of its expiry, and not after it.
    pub expire_at_the_millisecond: bool,
    /// An intentional bug: replicas get only the first command of the writes of a script or a
    /// transaction.
    pub replicate_in_part: bool,
    /// An intentional bug: a part of scripts, and the text that replaces it in every script that
    /// contains it.
    pub script_edit: Option<(String, String)>,
}
