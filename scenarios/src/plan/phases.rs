//! First the storm, then the calm.

use lockstorm_sim::time::True;

use crate::scenario::Scenario;

/// When the storm ends and when the run does, in true time.
///
/// Safety is judged throughout; progress only after the faults have ended, because a lock that no client gets during a partition
/// is right, and one that no client gets after it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// No fault begins after this, and what can be undone of those that rage is undone.
    pub storm_ends: True,
    /// The run ends.
    pub ends: True,
}

impl Phases {
    pub(super) fn of(scenario: &Scenario) -> Phases {
        let storm_ends = True::ZERO + scenario.run.storm.0;
        Phases { storm_ends, ends: storm_ends + scenario.run.calm.0 }
    }
}
