//! Intentional bugs of a node.

/// Mistakes that are made on purpose, by which tests prove that a checker notices them: a node
/// without any is as Redis is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mutations {
    /// A control for experiments, not Redis: the node's wall clock is what its monotonic clock
    /// makes of the time it started at, so that no operator can step it.
    pub wall_from_monotonic: bool,
    /// A control for experiments: replicas are sent how long keys live, as before Redis 7, instead
    /// of when they die.
    pub replicate_relative_ttl: bool,
    /// A mistake on purpose, to prove that it is noticed: a key is gone at the millisecond it
    /// expires at, and not after it.
    pub expire_at_the_millisecond: bool,
    /// A mistake on purpose: of what a script or a transaction wrote, replicas are sent the first
    /// command only.
    pub replicate_in_part: bool,
    /// A mistake on purpose: a part of every script that has it, and what runs in its place.
    pub script_edit: Option<(String, String)>,
}
