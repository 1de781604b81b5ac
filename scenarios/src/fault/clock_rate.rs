//! `clock_rate = { host, rate }`: all clocks of a host run fast or slow.

use lockstorm_sim::world::{Rate as WorldRate, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deed, Kind, Targets, each, list};
use crate::{
    selector::Hosts,
    units::{Draw, Rate},
};

pub(super) const ABOUT: &str = "Makes all clocks of a host run fast or slow.";

/// Makes all clocks of a host run fast or slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockRate {
    /// Whose clocks.
    pub host: Hosts,
    /// How much faster than true time.
    pub rate: Draw<Rate>,
}

impl Kind for ClockRate {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.host]
    }

    fn begin(&self, _: &str, targets: Targets<'_>, draw: &mut dyn FnMut() -> f64) -> Vec<Deed> {
        let rate = WorldRate::factor(1.0 + self.rate.at(draw()).0);
        each(&targets[0], |host| Verb::ClockRate { host, face: None, rate })
    }

    fn end(&self, _: &str, targets: Targets<'_>) -> Vec<Deed> {
        each(&targets[0], |host| Verb::ClockRate { host, face: None, rate: WorldRate::factor(1.0) })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the clocks of {} run {} off", list(&targets[0]), self.rate)
    }
}
