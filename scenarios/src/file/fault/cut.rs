//! `cut = { from, to }`: packets wait, and travel on when the cut heals.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, each_way, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Cuts the network between hosts, both ways or one way.";

/// Cuts the network between two sides. Connections stay open and silent, as over TCP: packets wait,
/// and travel on when the cut heals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The hosts on one side, which send in the direction of a one-way cut.
    pub from: Hosts,
    /// The hosts on the other side.
    pub to: Hosts,
    /// Cut only the direction from `from` to `to`.
    #[serde(default)]
    pub one_way: bool,
}

impl Effect for Cut {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.from, &self.to]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        each_way(&targets[0], &targets[1], !self.one_way, |from, to| Condition::Cut { from, to })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let (one, other) = (list(&targets[0]), list(&targets[1]));
        if self.one_way {
            format!("nothing gets from {one} to {other}")
        } else {
            format!("nothing gets through between {one} and {other}")
        }
    }
}
