//! The engines that a world can run on.

/// The part of a world that advances time and delivers packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// lockstorm's own timeline and sockets: it jumps from event to event, to the nanosecond.
    #[default]
    Event,
    /// `turmoil`, which runs every host once in each millisecond. A world behaves as on lockstorm's
    /// timeline, with a precision of a millisecond; this engine is slower, and exists to check the
    /// other. With the feature `turmoil` alone.
    #[cfg(feature = "turmoil")]
    Turmoil,
    /// Real time and the sockets of this machine, for code that talks to real servers. The links
    /// carry all data between hosts. The clocks of code can be changed as in virtual time, but
    /// those of real servers cannot. Only the random choices of such a run are a function of its
    /// seed.
    Real,
}

impl Engine {
    /// All engines of this build; `turmoil` only with the feature.
    pub const ALL: &[Engine] = &[
        Engine::Event,
        #[cfg(feature = "turmoil")]
        Engine::Turmoil,
        Engine::Real,
    ];

    /// Returns the name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Event => "event",
            #[cfg(feature = "turmoil")]
            Engine::Turmoil => "turmoil",
            Engine::Real => "real",
        }
    }

    /// Finds an engine by its name in commands; `None` if this build has no such engine.
    pub fn named(name: &str) -> Option<Engine> {
        Engine::ALL.iter().copied().find(|engine| engine.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_by_their_names_alone() {
        for engine in Engine::ALL {
            assert_eq!(Engine::named(engine.name()), Some(*engine));
        }
        assert_eq!(Engine::named("Event"), None);
    }
}
