//! `move_address = { address, to, reset }`: an address leads to another node from now on, or
//! nowhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::file::{name::Name, selector::Hosts};

pub(super) const ABOUT: &str = "Has an address lead to another node, as a proxy, a virtual IP or the DNS does after a failover, or nowhere.";

/// Makes an address lead to another node from now on, as a proxy, a virtual IP or the DNS does some
/// time after a failover. Connections that clients opened through it before stay with their node,
/// unless they are reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveAddress {
    /// The address, one of `[address.some-name]`.
    pub address: Name,
    /// The node that it leads to from now on. Default: none. A client that dials the address then
    /// gets an error at once, as for a name that the DNS does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Hosts>,
    /// Reset the connections between the old node and the clients that know the address, as a proxy
    /// does.
    #[serde(default)]
    pub reset: bool,
}

impl Effect for MoveAddress {
    fn hosts(&self) -> Vec<&Hosts> {
        self.to.iter().collect()
    }

    fn is_of_nodes(&self) -> bool {
        true
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let (address, reset) = (self.address.as_str().to_owned(), self.reset);
        let moves = |to: Option<&String>| FaultAction::MoveAddress {
            address: address.clone(),
            to: to.cloned(),
            reset,
        };
        match targets {
            [to, ..] => to.iter().map(Some).map(moves).collect(),
            [] => vec![moves(None)],
        }
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let reset = if self.reset { ", and connections to the old node are reset" } else { "" };
        let to = targets.first().map_or("nowhere".to_owned(), |to| format!("to {}", list(to)));
        format!("{} leads {to}{reset}", self.address.as_str())
    }
}
