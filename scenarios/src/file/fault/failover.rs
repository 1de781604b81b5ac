//! `failover = { replica, how }` or `failover = { sentinel, master, coordinated }`: an operator
//! makes a replica take over from its master.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does};
use crate::file::{name::Name, selector::Hosts};

pub(super) const ABOUT: &str =
    "Has a replica of a cluster take over (CLUSTER FAILOVER), or a Sentinel one (SENTINEL FAILOVER).";

/// Makes a replica take over from its master: in a cluster by the replica itself (CLUSTER
/// FAILOVER), elsewhere by a Sentinel (SENTINEL FAILOVER).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failover {
    /// The replica of a cluster that takes over; it receives CLUSTER FAILOVER at its console.
    /// Default: none, and a Sentinel replaces a master.
    pub replica: Option<Hosts>,
    /// The nodes of the cluster that take part: the master, the other masters, or none.
    #[serde(default)]
    pub how: How,
    /// The Sentinel that selects and promotes a replica; it receives SENTINEL FAILOVER at its
    /// console. Default: none, and a replica takes over.
    pub sentinel: Option<Hosts>,
    /// The master that the Sentinel replaces, by the name under which it watches it. Default: none;
    /// a Sentinel needs one.
    pub master: Option<Name>,
    /// Has the Sentinel ask the master to hand its role over (COORDINATED), as Valkey 9 can.
    /// Otherwise the master remains one until a Sentinel makes it a replica, some ten seconds
    /// later.
    #[serde(default)]
    pub coordinated: bool,
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

impl Failover {
    /// Returns the words of the command at the console.
    fn command(&self) -> Vec<String> {
        let (name, option) = match &self.master {
            Some(master) => (
                ["SENTINEL", "FAILOVER", master.as_str()].to_vec(),
                self.coordinated.then_some("COORDINATED"),
            ),
            None => {
                let option = match self.how {
                    How::Agreed => None,
                    How::Force => Some("FORCE"),
                    How::Takeover => Some("TAKEOVER"),
                };
                (["CLUSTER", "FAILOVER"].to_vec(), option)
            }
        };
        name.into_iter().chain(option).map(str::to_owned).collect()
    }
}

impl Effect for Failover {
    fn hosts(&self) -> Vec<&Hosts> {
        self.replica.iter().chain(&self.sentinel).collect()
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let command = self.command();
        let nodes = targets.iter().flatten();
        nodes.map(|node| FaultAction::Console { node: node.clone(), command: command.clone() }).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let hosts = targets.concat();
        if let Some(master) = self.master.as_ref().map(Name::as_str) {
            let (one, several) = match self.coordinated {
                false => {
                    (format!("replaces {master} by a replica"), format!("replace {master} by a replica"))
                }
                true => (
                    format!("has {master} hand over to a replica"),
                    format!("have {master} hand over to a replica"),
                ),
            };
            return does(&hosts, &one, &several);
        }
        let how = match self.how {
            How::Agreed => "",
            How::Force => " without its help",
            How::Takeover => " without a vote",
        };
        let takes = does(&hosts, "takes over from its master", "take over from their masters");
        format!("{takes}{how}")
    }
}
