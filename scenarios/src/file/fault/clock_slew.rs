//! `clock_slew = { host, by, over }`: the wall clock drifts to another time, as under a time daemon
//! that never steps it.

use lockstorm_world::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, does, each};
use crate::{
    file::selector::Hosts,
    units::{Draw, Span, Step},
};

pub(super) const ABOUT: &str = "Slews the wall clock of a host over a time.";

/// Slews the wall clock of a host: it runs faster or slower until it has moved by `by`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockSlew {
    /// The host whose clock moves.
    pub host: Hosts,
    /// The change, forward or back.
    pub by: Draw<Step>,
    /// The time that the change takes.
    pub over: Span,
}

impl Effect for ClockSlew {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.host]
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.by.draw(fraction());
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let by_nanos = self.by.drawn().0;
        each(&targets[0], |host| Verb::ClockSlew { host, by_nanos, over: self.over.0 })
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let of = does(&targets[0], "is slewed", "are slewed");
        let clock = if targets[0].len() > 1 { "clocks" } else { "clock" };
        format!("the wall {clock} of {of} by {} over {}", self.by, self.over)
    }
}
