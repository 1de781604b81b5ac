//! `suspend = "host"`: the machine sleeps. Its boottime and wall clock continue, its monotonic
//! clock stops.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Suspends a machine: nothing runs, and the monotonic clock stands still.";

/// Suspends a machine: nothing runs, and the monotonic clock stops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Suspend(pub Hosts);

impl Effect for Suspend {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        each(&targets[0], |host| Condition::Suspended { host })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        does(&targets[0], "is suspended", "are suspended")
    }
}
