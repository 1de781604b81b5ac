//! What links carry.

use std::sync::Arc;

use turmoil_net::Packet;

use super::conn::{Carried, Conn};

/// A packet on a link.
#[derive(Debug)]
pub(super) enum Parcel {
    /// The packet itself.
    Packet(Packet),
    /// `turmoil` has it; this is its number on the link.
    OnTurmoil,
    /// A part of a connection in real time.
    Real(Arc<Conn>, Carried),
}
