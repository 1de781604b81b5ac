//! The events of a server, and the actions it requests: the whole interface between
//! [`Server`](crate::server::Server) and the sockets, clocks and links of its driver.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;

use crate::time::Monotonic;

/// A connection, numbered by the driver when it accepts one and by the server when it dials one.
///
/// Numbers are never reused within the life of a server. The two sides count in disjoint ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl ConnId {
    /// The number of the first client. A server reserves the numbers before it for clients of its
    /// own, in whose names scripts and functions run.
    pub const FIRST: u64 = 3;
    /// The first number that the server gives to connections it dials itself.
    pub const DIALED: u64 = 1 << 48;
    /// The first number of connections that come to the port of the cluster bus. No client has such
    /// a number.
    pub const BUS: u64 = 1 << 56;
    /// The first number that the server gives to connections of the cluster bus that it dials
    /// itself, and to the links of slot migrations to their targets.
    pub const BUS_DIALED: u64 = 1 << 57;

    /// Returns true for a connection of the cluster bus.
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
        /// The number that the driver chose for it.
        conn: ConnId,
        /// The address it comes from.
        peer: String,
        /// The address it reached.
        local: String,
    },
    /// A connection that the server dialed is established.
    Dialed {
        /// The connection, as [`Action::Dial`] named it.
        conn: ConnId,
        /// The address that it comes from.
        local: String,
    },
    /// Bytes arrived.
    Bytes {
        /// The connection that the bytes came over.
        conn: ConnId,
        /// Any piece of the stream, however it is split.
        bytes: Bytes,
    },
    /// A connection ended, from the other side or because dialing failed. Not sent for connections
    /// that the server closed.
    Closed {
        /// The connection that is gone.
        conn: ConnId,
    },
    /// The network has not accepted all bytes sent to this connection. The driver reports it when
    /// bytes remain, and when no bytes remain any more: unread bytes count as memory, and against
    /// `client-output-buffer-limit`.
    Unsent {
        /// The connection with the unsent bytes.
        conn: ConnId,
        /// The number of bytes that the driver still holds.
        bytes: usize,
    },
    /// The time of the last [`Action::Alarm`] has come.
    Alarm,
    /// All other clients have had their turn, as the last [`Action::ResumeScript`] requested.
    ResumeScript,
    /// The node's disk has stopped or resumed accepting writes.
    Disk {
        /// The reason why nothing can be written, if so.
        fault: Option<DiskFault>,
    },
    /// A signal asks the process to end.
    Signal(Signal),
}

/// The reason why a disk accepts no writes, in the words of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum DiskFault {
    /// ENOSPC: the disk is full.
    #[error("No space left on device")]
    Full,
    /// EIO: the disk fails every write.
    #[error("Input/output error")]
    Failing,
}

/// A signal that asks a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, which a terminal sends.
    Interrupt,
    /// SIGTERM, which service managers and `kill` send.
    Terminate,
}

impl Signal {
    /// Returns the name in capitals, `SIGINT` or `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        }
    }
}

/// An action that the server requests from its driver; the driver executes them in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write these bytes.
    Send {
        /// The connection to write to.
        conn: ConnId,
        /// The bytes, to be written in this order.
        bytes: Bytes,
    },
    /// Connect to another node. [`Event::Dialed`] or [`Event::Closed`] answers.
    Dial {
        /// The id of the new connection.
        conn: ConnId,
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// The source address (`bind-source-addr`), if the machine has it; `None` for any.
        from: Option<IpAddr>,
    },
    /// Close the connection once all earlier bytes are written. No [`Event::Closed`] follows.
    Close {
        /// The connection to close.
        conn: ConnId,
    },
    /// Close the connection once all earlier bytes are written, and report it with
    /// [`Event::Closed`]. It was sent more than the network is sure to accept, and counts as a
    /// client until all of that is gone.
    Drain {
        /// The connection to close.
        conn: ConnId,
    },
    /// Close the connection without waiting for its peer: earlier bytes that do not fit into the
    /// network's buffers are dropped. No [`Event::Closed`] follows.
    Kill {
        /// The connection to close.
        conn: ConnId,
        /// Drop all bytes that wait to be written, without offering them to the network: they
        /// exceed the limit for unread output.
        discard: bool,
    },
    /// Call again with [`Event::Alarm`] at this time of the host's monotonic clock. Replaces the
    /// previous alarm.
    Alarm {
        /// The time at which it rings.
        at: Monotonic,
    },
    /// Read nothing from connections until this time of the host's monotonic clock, for which an
    /// alarm is requested as well; `None` revokes it. The server does nothing during a stall (DEBUG
    /// SLEEP), and keeps bytes that arrive nevertheless for later.
    Stall {
        /// The end of the stall.
        until: Option<Monotonic>,
    },
    /// Call again with [`Event::ResumeScript`] once all other clients have had their turn: a script
    /// waits for its next turn. Only requested while
    /// [`Env::script_clock`](crate::env::Env::script_clock) is set.
    ResumeScript,
    /// Advance the clocks, ringing every alarm on the way. Only requested while
    /// [`Env::manual_clock`](crate::env::Env::manual_clock) is set.
    Advance {
        /// The time to advance by.
        by: Duration,
    },
    /// Stop the process, as SHUTDOWN does. Durable data is kept for the next start.
    Exit,
}
