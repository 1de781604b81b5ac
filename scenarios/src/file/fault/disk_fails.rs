//! `disk_fails = "node"`: a node can write nothing to its disk.

use lockstorm_sim::event::DiskFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Has the disk of a node fail: nothing can be written, so that writes of clients are refused with MISCONF.";

/// Has the disk of a node fail (`EIO`): nothing more is written, and what is on it can be read all
/// the same. What clients notice depends on what the node writes: with an AOF one write is answered
/// and every later one is refused (`MISCONF Errors writing to the AOF file`), with `durability =
/// "aof-always"` the process ends, with snapshots writes are refused once one has failed, and
/// without either nothing happens. When the fault is over the node writes what it had not written,
/// and takes writes again; of snapshots after the next one, which it tries six seconds after the
/// last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DiskFails(pub Hosts);

impl Effect for DiskFails {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn is_of_nodes(&self) -> bool {
        true
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let disk = |node: &String| FaultAction::Disk { node: node.clone(), fault: DiskFault::Failing };
        targets[0].iter().map(disk).collect()
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the disk of {} takes no writes", list(&targets[0]))
    }
}
