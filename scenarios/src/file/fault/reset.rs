//! `reset = { from, to }`: every connection between the two sides breaks.

use lockstorm_world::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Breaks every connection between hosts.";

/// Breaks every connection between two sides. Both ends notice it immediately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// The hosts on one side.
    pub from: Hosts,
    /// The hosts on the other side. A host on both sides keeps its connections to itself.
    pub to: Hosts,
}

impl Effect for Reset {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.from, &self.to]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let others = &targets[1];
        let pairs =
            targets[0].iter().flat_map(|one| others.iter().map(move |other| (one.clone(), other.clone())));
        pairs
            .filter(|(one, other)| one != other)
            .map(|(one, other)| FaultAction::World(Verb::Reset { one, other }))
            .collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the connections between {} and {} break", list(&targets[0]), list(&targets[1]))
    }
}
