//! What links carry.

use turmoil_net::Packet;

/// A packet on a link.
#[derive(Debug)]
pub(super) enum Parcel {
    /// The packet itself.
    Packet(Packet),
    /// `turmoil` has it; this is its number on the link.
    OnTurmoil,
}
