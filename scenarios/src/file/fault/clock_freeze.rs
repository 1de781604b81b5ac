//! `clock_freeze = "host"`: the clocks stop, the host runs.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, each, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Stops all clocks of a host while it goes on running.";

/// Stops all clocks of a host while it continues to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ClockFreeze(pub Hosts);

impl Effect for ClockFreeze {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        each(&targets[0], |host| Condition::ClockFrozen { host, clock_id: None })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the clocks of {} stand still", list(&targets[0]))
    }
}
