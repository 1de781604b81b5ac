//! `restart = "host"`: a crashed host comes up again.

use lockstorm_world::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Starts a crashed host again, with what its disk kept.";

/// Starts a crashed host again, with the data that its disk kept, and ends every crash that keeps
/// it down. A running host crashes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Restart(pub Hosts);

impl Effect for Restart {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        each(&targets[0], |host| Verb::Restart { host })
    }

    fn words(&self, targets: Targets<'_>) -> String {
        does(&targets[0], "comes up again", "come up again")
    }
}
