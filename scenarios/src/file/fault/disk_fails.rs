//! `disk_fails = "node"`: a node can write nothing to its disk.

use lockstorm_sim::event::DiskFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Has the disk of a node fail: nothing can be written, so that writes of clients are refused with MISCONF.";

/// Makes the disk of a node fail (`EIO`): the node can write nothing more, but can still read. The
/// effect on clients depends on the files that the node writes. With an AOF, one write is answered
/// and every later one is refused (`MISCONF Errors writing to the AOF file`). With `durability =
/// "aof-always"` the process ends. With snapshots, writes are refused once a snapshot has failed.
/// Without either nothing happens. When the fault is over, the node writes the data that it still
/// has to write, and accepts writes again; with snapshots only after the next one, which it tries
/// six seconds after the last.
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
