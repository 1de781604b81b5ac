//! What becomes of a message between the network and the server. A platform decides it
//! ([`Platform::request`](super::Platform)), the driver carries it out.

use std::time::Duration;

/// Where a connection breaks; where several rules break it, the later of these decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// The command is executed and its reply is lost, and with it all that follows on the
    /// connection: TCP has no holes, so the connection is silent until one side closes or resets
    /// it.
    LoseReply,
    /// The command is executed and its connection is closed instead of a reply.
    BeforeReply,
    /// The command is not executed and its connection is closed.
    BeforeRequest,
}

/// What becomes of one command: what every rule whose turn it is does to it, together. Delays add
/// up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// How much later the command, and what follows it on the connection, reaches the node.
    pub request_delay: Duration,
    /// How much later its reply, and what follows it on the connection, leaves the node.
    pub reply_delay: Duration,
    /// Where its connection breaks, if it does.
    pub breaks: Option<Break>,
}
