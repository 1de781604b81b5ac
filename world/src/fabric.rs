//! The engine under one world, with its state: lockstorm's own network, or `turmoil`.

#[cfg(feature = "turmoil")]
use crate::turmoil::Turmoil;

/// The engine of one world.
pub(crate) enum Fabric {
    Event,
    #[cfg(feature = "turmoil")]
    Turmoil(Box<Turmoil>),
    Real,
}
