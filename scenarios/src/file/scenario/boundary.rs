//! `[boundary]`: the key along which a scenario's verdict changes, and the formula that its author
//! claims for the value at which it does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Formula, Scenario, Ticks, limits::Wrong};

/// The value at which a verdict changes: `[boundary]`. `lockstorm boundary` finds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boundary {
    /// The key whose value is varied, by its path, such as `fault.jump.clock_step.by`.
    pub key: String,
    /// Its least value.
    pub from: Ticks,
    /// Its greatest value.
    pub to: Ticks,
    /// The precision with which the boundary is found. Default: a ten-thousandth of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Ticks>,
    /// The checker whose verdict changes. Default: the first checker in `expect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checker: Option<String>,
    /// The claimed value of the boundary. Default: no claim. It is a sum of values such as `102ms`,
    /// of `lease`, `drift`, `latency` and `rtt`, and of keys by their paths, such as
    /// `sentinel.s.down_after`. Each may be multiplied or divided (`2 * latency`, `lock.watchdog /
    /// 3`, `lease / (lease - drift) * 100% - 100%`). Two sums with `..` between them bound the
    /// value, if the scenario does not determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<Formula>,
}

impl Boundary {
    pub(super) fn wrong(&self, scenario: &Scenario) -> Result<(), Wrong> {
        if !self.from.is_like(self.to) || self.from >= self.to {
            return Err(Wrong::at(
                "to",
                "a range goes from a smaller value to a larger one of the same kind",
            ));
        }
        if self.within.is_some_and(|within| !within.is_like(self.from)) {
            return Err(Wrong::at(
                "within",
                format!("expected a distance between {} and {}", self.from, self.to),
            ));
        }
        let Some(formula) = &self.formula else { return Ok(()) };
        if formula.names(&self.key) {
            return Err(Wrong::at(
                "formula",
                format!("{} is moved, so that its value says nothing", self.key),
            ));
        }
        let bounds = formula.bounds(scenario).map_err(|error| Wrong::at("formula", error))?;
        if !bounds.low.is_like(self.from) {
            let message = format!("{} is no value between {} and {}", bounds.low, self.from, self.to);
            return Err(Wrong::at("formula", message));
        }
        Ok(())
    }
}
