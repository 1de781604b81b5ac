//! `clock_step = { host, by }`: the wall clock jumps, as under an operator or a time daemon.

use lockstorm_world::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::{
    file::selector::Hosts,
    units::{Draw, Step},
};

pub(super) const ABOUT: &str = "Steps the wall clock of a host.";

/// Steps the wall clock of a host. The change lasts: only a second step undoes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockStep {
    /// The host whose clock moves.
    pub host: Hosts,
    /// The change, forward or back.
    pub by: Draw<Step>,
}

impl Effect for ClockStep {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.host]
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.by.draw(fraction());
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let by_nanos = self.by.drawn().0;
        each(&targets[0], |host| Verb::ClockStep { host, by_nanos })
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let of = does(&targets[0], "jumps", "jump");
        let clock = if targets[0].len() > 1 { "clocks" } else { "clock" };
        format!("the wall {clock} of {of} by {}", self.by)
    }
}
