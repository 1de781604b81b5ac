//! The steps of a run that differ between engines.

use crate::{
    fabric::Fabric,
    host::Host,
    time::True,
    timeline::{End, World, WorldError},
};

impl World {
    /// Starts the software of all hosts of a new world.
    pub(crate) fn start_all(&mut self) {
        match &self.fabric {
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => self.enter_turmoil(),
            Fabric::Event | Fabric::Real => {
                let runtime = self.runtime.clone();
                // Software may look for the runtime while it is made, so it is made inside.
                runtime.block_on(async { self.hosts.iter_mut().for_each(Host::start) });
            }
        }
    }

    /// Runs until `until`, or until the world is finished.
    pub(crate) fn advance(&mut self, until: True) -> Result<End, WorldError> {
        match &self.fabric {
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => self.run_in_ticks(until),
            Fabric::Event | Fabric::Real => {
                let runtime = self.runtime.clone();
                runtime.block_on(self.drive(until))
            }
        }
    }

    /// Starts the software of one host.
    pub(crate) fn start_software(&mut self, host: usize) {
        match &self.fabric {
            #[cfg(feature = "turmoil")]
            Fabric::Turmoil(_) => self.start_on_turmoil(host),
            Fabric::Event | Fabric::Real => self.hosts[host].start(),
        }
    }

    /// Drops the software of one host.
    pub(crate) fn end_software(&mut self, host: usize, how: &'static str) {
        #[cfg(feature = "turmoil")]
        if let Fabric::Turmoil(_) = &self.fabric {
            self.end_on_turmoil(host);
        }
        self.hosts[host].end(how);
    }
}
