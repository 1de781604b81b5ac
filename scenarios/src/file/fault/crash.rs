//! `crash = "host"`: the host stops, and starts again when no crash keeps it down any more.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Crashes a host: its memory is gone, and of its disk what was not synced.";

/// Crashes a host: it loses its memory and the unsynced data of its disk. It starts again at the
/// end of the last crash that keeps it down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Crash(pub Hosts);

impl Effect for Crash {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        each(&targets[0], |host| Condition::Down { host })
    }

    fn words(&self, targets: Targets<'_>) -> String {
        does(&targets[0], "crashes", "crash")
    }
}
