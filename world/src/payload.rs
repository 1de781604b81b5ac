//! The payloads of links.

use std::sync::Arc;

use crate::{
    conn::{Carried, Conn},
    packet::Packet,
};

/// A packet on a link.
#[derive(Debug)]
pub(crate) enum Payload {
    /// The packet itself.
    Packet(Packet),
    /// `turmoil` holds the packet itself; the link knows only its number.
    #[cfg(feature = "turmoil")]
    OnTurmoil,
    /// A part of a connection in real time.
    Real(Arc<Conn>, Carried),
}
