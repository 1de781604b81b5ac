//! What happens to a server, and what it asks for: the whole surface between
//! [`Server`](crate::server::Server) and the sockets, clocks and links of its driver.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;

use crate::time::Monotonic;

/// A connection, named by the driver when it accepts one and by the server when it dials one.
///
/// Numbers are never used again within the life of a server. The two sides count in ranges that
/// cannot meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl ConnId {
    /// The number of the first client. A server keeps those before it for clients of its own, in
    /// whose names scripts and functions run.
    pub const FIRST: u64 = 3;
    /// The first number that the server gives to connections it dials itself.
    pub const DIALED: u64 = 1 << 48;
    /// The first number of connections that come to the port of the cluster bus. No client has a
    /// number of that kind.
    pub const BUS: u64 = 1 << 56;
    /// The first number that the server gives to connections of the cluster bus that it dials
    /// itself.
    pub const BUS_DIALED: u64 = 1 << 57;

    /// Whether it is one of the cluster bus.
    pub fn is_bus(self) -> bool {
        self.0 >= ConnId::BUS
    }
}

impl std::fmt::Display for ConnId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Something that happened to the server.
#[derive(Debug, Clone)]
pub enum Event {
    /// A peer connected; `peer` and `local` are addresses as CLIENT LIST shows them
    /// (`127.0.0.1:51000`).
    Connected {
        /// The new connection.
        conn: ConnId,
        /// Where it comes from.
        peer: String,
        /// The address it reached.
        local: String,
    },
    /// A connection that the server dialed stands.
    Dialed {
        /// The connection, as [`Action::Dial`] named it.
        conn: ConnId,
        /// The address that it comes from.
        local: String,
    },
    /// Bytes arrived.
    Bytes {
        /// On this connection.
        conn: ConnId,
        /// Any piece of the stream, however it was cut.
        bytes: Bytes,
    },
    /// A connection ended, from the other side or because dialing failed. Not sent for connections
    /// the server closed.
    Closed {
        /// The connection that is gone.
        conn: ConnId,
    },
    /// The network has not accepted so many of the bytes sent to this connection. To be reported
    /// when bytes remain, and when none do any more: what a peer leaves unread counts as memory,
    /// and against `client-output-buffer-limit`.
    Unsent {
        /// The connection.
        conn: ConnId,
        /// How many bytes the driver still has.
        bytes: usize,
    },
    /// The time that the last [`Action::Alarm`] asked for has come.
    Alarm,
    /// All other clients have had their turn, as the last [`Action::ResumeScript`] asked for.
    ResumeScript,
    /// The node's disk takes nothing any more, or does so again.
    Disk {
        /// Why nothing can be written, if so.
        fault: Option<DiskFault>,
    },
    /// A signal asks the process to end.
    Signal(Signal),
}

/// Why a disk takes nothing, in the words of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum DiskFault {
    /// There is no space left on it.
    #[error("No space left on device")]
    Full,
    /// It fails.
    #[error("Input/output error")]
    Failing,
}

/// How a process is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, which a terminal sends.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        }
    }
}

/// Something the server wants done, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write these bytes.
    Send {
        /// To this connection.
        conn: ConnId,
        /// In this order.
        bytes: Bytes,
    },
    /// Connect to another node. [`Event::Dialed`] or [`Event::Closed`] answers.
    Dial {
        /// The name of the connection to be.
        conn: ConnId,
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// The address of its own to come from (`bind-source-addr`), as far as the machine has it;
        /// any for none.
        from: Option<IpAddr>,
    },
    /// Close the connection once what was sent before is written. No [`Event::Closed`] follows.
    Close {
        /// The connection to close.
        conn: ConnId,
    },
    /// Close the connection once what was sent before is written, and say so with
    /// [`Event::Closed`]: it was sent more than the network is sure to take, and counts as a client
    /// until all of that is gone.
    Drain {
        /// The connection to close.
        conn: ConnId,
    },
    /// Close the connection without waiting for its peer: what was sent before and finds no room in
    /// the network is dropped. No [`Event::Closed`] follows.
    Kill {
        /// The connection to close.
        conn: ConnId,
        /// Nothing of what waits to be written is offered to the network: it is more than the
        /// connection may leave unread.
        discard: bool,
    },
    /// Call again with [`Event::Alarm`] at this time of the host's monotonic clock. Replaces the
    /// alarm before it.
    Alarm {
        /// When.
        at: Monotonic,
    },
    /// Read nothing from connections until this time of the host's monotonic clock, which an alarm
    /// is asked for as well; `None` takes it back. The server does nothing meanwhile (DEBUG SLEEP),
    /// and what is read all the same it keeps for later.
    Stall {
        /// Until when.
        until: Option<Monotonic>,
    },
    /// Call again with [`Event::ResumeScript`] once all other clients have had their turn: a script
    /// waits for its next. Only asked for while
    /// [`Env::script_clock`](crate::env::Env::script_clock) is set.
    ResumeScript,
    /// Move the clocks on by so much, with every alarm on the way. Only asked for while
    /// [`Env::manual_clock`](crate::env::Env::manual_clock) is set.
    Advance {
        /// How far.
        by: Duration,
    },
    /// Stop the process, as SHUTDOWN does. What is durable stays for the next start.
    Exit,
}
