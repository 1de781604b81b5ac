//! The state of a node's connection, for the output of a live audit.

/// A node as the audit's connection shows it.
#[derive(Debug)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "metrics have all of it"))]
pub(super) struct Line {
    pub(super) name: String,
    /// The number of the node in the audit.
    pub(super) number: usize,
    /// Set while its commands arrive.
    pub(super) is_open: bool,
    /// The present time of its server in microseconds since 1970, if it is known.
    pub(super) present_us: Option<i64>,
    /// The time by which the last command was read later than the fastest one.
    pub(super) lag_us: i64,
    pub(super) read_bytes: u64,
}
