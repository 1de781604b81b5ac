//! `disk_full = "node"`: a node can write nothing to its disk.

use lockstorm_sim::event::DiskFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str =
    "Fills the disk of a node: nothing can be written, so that writes of clients are refused with MISCONF.";

/// Fills the disk of a node (`ENOSPC`). Nothing more is written, and the node behaves as with
/// `disk_fails`, with another text in its errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DiskFull(pub Hosts);

impl Effect for DiskFull {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn is_of_nodes(&self) -> bool {
        true
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let disk = |node: &String| FaultAction::Disk { node: node.clone(), fault: DiskFault::Full };
        targets[0].iter().map(disk).collect()
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the disk of {} is full", list(&targets[0]))
    }
}
