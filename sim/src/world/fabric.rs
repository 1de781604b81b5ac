//! The engine under one world, with its state: lockstorm's own network, or `turmoil`.

use turmoil_net::EnterGuard;

use super::turmoil::Turmoil;

/// The engine of one world.
pub(super) enum Fabric {
    Event(EnterGuard),
    Turmoil(Box<Turmoil>),
    Real,
}
