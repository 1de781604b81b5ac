//! `slow = { from, to, by }`: every packet takes so much longer.

use std::time::Duration;

use lockstorm_sim::world::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deed, Kind, Targets, each_way, list};
use crate::{
    selector::Hosts,
    units::{Draw, Span},
};

pub(super) const ABOUT: &str = "Delays every packet from some hosts to others.";

/// Delays every packet from some hosts to others, in this direction only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    /// The sending side.
    pub from: Hosts,
    /// The receiving side.
    pub to: Hosts,
    /// How much longer a packet takes.
    pub by: Draw<Span>,
}

impl Kind for Slow {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.from, &self.to]
    }

    fn begin(&self, _: &str, targets: Targets<'_>, draw: &mut dyn FnMut() -> f64) -> Vec<Deed> {
        let by = self.by.at(draw()).0;
        each_way(&targets[0], &targets[1], false, |from, to| Verb::Delay { from, to, by })
    }

    fn end(&self, _: &str, targets: Targets<'_>) -> Vec<Deed> {
        each_way(&targets[0], &targets[1], false, |from, to| Verb::Delay { from, to, by: Duration::ZERO })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("packets from {} to {} take {} longer", list(&targets[0]), list(&targets[1]), self.by)
    }
}
