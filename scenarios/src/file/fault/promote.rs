//! `promote = "node"`: a replica becomes a master, by the command of an operator or a Sentinel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Makes a replica a master (REPLICAOF NO ONE).";

/// Makes a replica a master (REPLICAOF NO ONE).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Promote(pub Hosts);

impl Effect for Promote {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let command = ["REPLICAOF", "NO", "ONE"].map(str::to_owned).to_vec();
        targets[0]
            .iter()
            .map(|node| FaultAction::Console { node: node.clone(), command: command.clone() })
            .collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        does(&targets[0], "is promoted", "are promoted")
    }
}
