//! `pause = "host"`: the process stops, its clocks continue.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Stops a process; its clocks go on (SIGSTOP, a collector, a starved machine).";

/// Stops a process; its clocks continue (SIGSTOP, a collector, a starved machine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pause(pub Hosts);

impl Effect for Pause {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        each(&targets[0], |host| Condition::Paused { host })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        does(&targets[0], "stands still", "stand still")
    }
}
