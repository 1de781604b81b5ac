//! The options that a replica announces to its master and to Sentinels.

/// The properties that a replica announces (`replica-announce-ip`, `replica-announce-port`,
/// `replica-announced`, `replica-priority`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announce {
    /// The host at which it is reached; empty for the source address of its connection.
    pub ip: String,
    /// The port; 0 for the port it listens on.
    pub port: u16,
    /// False to hide it from the clients of Sentinels.
    pub announced: bool,
    /// Sentinels promote the replica with the lowest number, and never one with 0.
    pub priority: i32,
}

impl Default for Announce {
    fn default() -> Announce {
        Announce { ip: String::new(), port: 0, announced: true, priority: 100 }
    }
}
