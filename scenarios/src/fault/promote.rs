//! `promote = "node"`: a replica becomes a master, as an operator or a sentinel makes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deed, Kind, Targets, list};
use crate::selector::Hosts;

pub(super) const ABOUT: &str = "Makes a replica a master (REPLICAOF NO ONE).";

/// Makes a replica a master (REPLICAOF NO ONE).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Promote(pub Hosts);

impl Kind for Promote {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn deeds(&self, targets: Targets<'_>) -> Vec<Deed> {
        let command = ["REPLICAOF", "NO", "ONE"].map(str::to_owned).to_vec();
        targets[0].iter().map(|node| Deed::Console { node: node.clone(), command: command.clone() }).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("{} is promoted", list(&targets[0]))
    }
}
