//! `follow = { node, master }`: a node becomes a replica of another, by the command of an operator
//! or a Sentinel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Makes a node a replica of another (REPLICAOF).";

/// Makes a node a replica of another (REPLICAOF).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// The node that becomes the replica.
    pub node: Hosts,
    /// The master that the node follows from then on; of several, the first.
    pub master: Hosts,
}

impl Effect for Follow {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.node, &self.master]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let Some(master) = targets[1].first() else { return Vec::new() };
        let command = vec!["REPLICAOF".to_owned(), master.clone(), "6379".to_owned()];
        let nodes = targets[0].iter().filter(|node| *node != master);
        nodes.map(|node| FaultAction::Console { node: node.clone(), command: command.clone() }).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("{} {}", does(&targets[0], "now follows", "now follow"), list(&targets[1]))
    }
}
