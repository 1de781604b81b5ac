//! `slow = { from, to, by }`: every packet takes longer by `by`.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, each_way, list};
use crate::{
    file::selector::Hosts,
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
    /// The additional time that a packet takes.
    pub by: Draw<Span>,
}

impl Effect for Slow {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.from, &self.to]
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.by.draw(fraction());
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let by = self.by.drawn().0;
        each_way(&targets[0], &targets[1], false, |from, to| Condition::Slow { from, to, by })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("packets from {} to {} take {} longer", list(&targets[0]), list(&targets[1]), self.by)
    }
}
