//! `failover = { replica, how }`: an operator makes a replica of a cluster take over from its
//! master.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Has a replica of a cluster take over from its master (CLUSTER FAILOVER).";

/// Makes a replica of a cluster take over from its master (CLUSTER FAILOVER).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failover {
    /// The replica that takes over; it receives CLUSTER FAILOVER at its console.
    pub replica: Hosts,
    /// The nodes that take part: the master, the other masters, or none.
    #[serde(default)]
    pub how: How,
}

/// The nodes that take part in a manual failover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The master holds back writes until the replica has caught up, and a majority of the masters
    /// must vote for it.
    #[default]
    Agreed,
    /// A majority of the masters must vote for the replica; its master is not asked (FORCE).
    Force,
    /// No other node is asked (TAKEOVER).
    Takeover,
}

impl Effect for Failover {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.replica]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let option = match self.how {
            How::Agreed => None,
            How::Force => Some("FORCE"),
            How::Takeover => Some("TAKEOVER"),
        };
        let words = ["CLUSTER", "FAILOVER"].into_iter().chain(option);
        let command: Vec<String> = words.map(str::to_owned).collect();
        let nodes = targets[0].iter();
        nodes.map(|node| FaultAction::Console { node: node.clone(), command: command.clone() }).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let how = match self.how {
            How::Agreed => "",
            How::Force => " without its help",
            How::Takeover => " without a vote",
        };
        let takes = does(&targets[0], "takes over from its master", "take over from their masters");
        format!("{takes}{how}")
    }
}
