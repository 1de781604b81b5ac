//! `clock_rate = { host, rate }`: all clocks of a host run fast or slow.

use lockstorm_world::{Condition, Rate as WorldRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, each, list};
use crate::{
    file::selector::Hosts,
    units::{Draw, Rate},
};

pub(super) const ABOUT: &str = "Makes all clocks of a host run fast or slow.";

/// Makes all clocks of a host run fast or slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockRate {
    /// The host whose clocks change.
    pub host: Hosts,
    /// The rate by which they run faster than true time.
    pub rate: Draw<Rate>,
}

impl Effect for ClockRate {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.host]
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.rate.draw(fraction());
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let rate = WorldRate::factor(1.0 + self.rate.drawn().0);
        each(&targets[0], |host| Condition::ClockRate { host, clock_id: None, rate })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the clocks of {} run {} off", list(&targets[0]), self.rate)
    }
}
