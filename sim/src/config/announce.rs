//! What a replica tells its master and Sentinels about itself.

/// What a replica tells about itself (`replica-announce-ip`, `replica-announce-port`,
/// `replica-announced`, `replica-priority`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announce {
    /// The host at which it is reached; empty for the address that its connection comes from.
    pub ip: String,
    /// The port; 0 for the one it listens on.
    pub port: u16,
    /// Whether Sentinels show it to clients.
    pub announced: bool,
    /// Sentinels promote the replica with the lowest number, and never one with 0.
    pub priority: i32,
}

impl Default for Announce {
    fn default() -> Announce {
        Announce { ip: String::new(), port: 0, announced: true, priority: 100 }
    }
}
