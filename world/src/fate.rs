//! The fate of a request between the network and the software of a node. Rules decide it
//! ([`HostCtx::judge`](crate::HostCtx::judge)). The code that reads requests carries it out; for a
//! server process in real time the world does.

use std::time::Duration;

/// The point at which a connection breaks. If several rules break it, the variant that is listed
/// last wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// The command is executed, but its reply and everything after it on the connection is lost.
    /// TCP has no holes, so the connection is silent until one side closes or resets it.
    LoseReply,
    /// The command is executed, and its connection is closed instead of a reply.
    BeforeReply,
    /// The command is not executed, and its connection is closed.
    BeforeRequest,
}

/// The fate of a command: the combined effects of all rules that apply to it. Delays add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// The delay before the command, and everything after it on the connection, reaches the node.
    pub request_delay: Duration,
    /// The delay before its reply, and everything after it on the connection, leaves the node.
    pub reply_delay: Duration,
    /// The point at which its connection breaks; `None` if it does not break.
    pub breaks: Option<Break>,
}
