//! A packet between two kernels.

use std::net::SocketAddrV4;

use bytes::Bytes;

/// The largest number of bytes that a packet carries over a link. Splitting messages costs time
/// and changes nothing on links that keep order.
pub(crate) const BYTES_MAX: usize = 59_960;

/// The same between two sockets of one host.
pub(crate) const BYTES_MAX_WITHIN: usize = 65_496;

/// The meaning of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request for a connection.
    Syn,
    /// Its acceptance.
    SynAck,
    /// Bytes, an acknowledgement, or both.
    Data,
    /// The end of one direction, and an acknowledgement.
    Fin,
    /// The abrupt end of both directions.
    Rst,
}

/// A packet of TCP.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) kind: Kind,
    /// The number of the first byte.
    pub(crate) sequence: u32,
    /// The number of the next byte that the sender expects.
    pub(crate) ack: u32,
    /// The number of bytes that the sender has room for.
    pub(crate) window: u16,
    pub(crate) payload: Bytes,
}

impl Packet {
    /// Returns a reset as the kernel of `from` sends it to `to`.
    pub(crate) fn reset(from: SocketAddrV4, to: SocketAddrV4) -> Packet {
        Packet { from, to, kind: Kind::Rst, sequence: 0, ack: 0, window: 0, payload: Bytes::new() }
    }

    /// Returns its name in the trace.
    pub(crate) fn flags(&self) -> &'static str {
        match self.kind {
            Kind::Syn => "SYN",
            Kind::SynAck => "SYN ACK",
            Kind::Fin => "FIN",
            Kind::Rst => "RST",
            Kind::Data if self.payload.is_empty() => "ACK",
            Kind::Data => "DATA",
        }
    }
}
