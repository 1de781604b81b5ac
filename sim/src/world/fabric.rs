//! What carries a world: lockstorm's own network and timeline, or `turmoil`.

use turmoil_net::{EnterGuard, Packet};

use super::turmoil::Turmoil;

/// What moves time on and packets about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// lockstorm's own timeline over `turmoil-net`: it jumps from event to event, to the nanosecond.
    #[default]
    Event,
    /// `turmoil`, which runs every host once in each millisecond. All that a world does is what it does on its own timeline,
    /// to the millisecond; it is slower, and there to check the other.
    Turmoil,
    /// Real time and the sockets of this machine, for code that talks to real servers: time cannot be moved, and neither
    /// clocks nor links can be bent. Nothing about such a run is a function of its seed but what code draws.
    Real,
}

/// The engine of one world.
pub(super) enum Fabric {
    Event(EnterGuard),
    Turmoil(Box<Turmoil>),
    Real,
}

/// A packet on a link.
#[derive(Debug)]
pub(super) enum Parcel {
    /// The packet itself.
    Packet(Packet),
    /// `turmoil` has it, under the number that it is known by on the link.
    OnTurmoil,
}
