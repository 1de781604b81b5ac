//! `lose_disk = "host"`: the host crashes, and starts again in its initial state.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str =
    "Crashes a node or Sentinel and takes its disk: it comes up without data, or without its state.";

/// Crashes a node or a Sentinel and takes its disk. A node starts again without data. A Sentinel
/// starts with its initial configuration file: it has another id, and knows of no vote, no epoch
/// and no failover. It starts again at the end of the last crash that keeps it down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LoseDisk(pub Hosts);

impl Effect for LoseDisk {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let lost = targets[0].iter().map(|host| FaultAction::LoseDisk { host: host.clone() });
        lost.chain(each(&targets[0], |host| Condition::Down { host })).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        does(&targets[0], "crashes, and its disk is lost", "crash, and their disks are lost")
    }
}
