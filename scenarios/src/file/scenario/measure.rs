//! `[measure]`: the expected value of a checker's measure, as a formula over the values of the
//! scenario.
//!
//! Not every number of a claim is a point on an axis. The time for which a lock cannot be acquired,
//! or the number of commands that a hand-off costs, is measured in each run. It follows from
//! leases, timeouts and other times in the same file.

use std::{fmt, time::Duration};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Formula, Scenario, Ticks, Wrong, error::Mistake, places::Places};
use crate::judge::{
    checker::{self, Checker},
    verdict::{Finding, Quantity, Range},
};

/// The default tolerance of a time: servers count in milliseconds.
const WITHIN: Duration = Duration::from_millis(1);

/// The expected measures, by checker and name.
pub type Measures = IndexMap<String, IndexMap<String, Stated>>;

/// The expected value of a measure: `[measure]`, as `progress.stalled = { formula = "lease - 1s",
/// within = "5ms" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// A sum as in the formula of a boundary, or two sums with `..` between them if the scenario
    /// only bounds the measure. A negative value counts as zero, because no measure is negative.
    pub formula: Formula,
    /// The largest difference between the measure and the formula. Default: a millisecond for a
    /// time, because servers count in milliseconds, and zero for a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Ticks>,
}

/// A measure of a run, compared with its formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The name of the checker, such as `l1`.
    pub checker: String,
    /// The name of the measure, such as `overlap`.
    pub measure: String,
    /// The formula as written in the file.
    pub formula: String,
    /// The least value of the formula.
    pub least: Quantity,
    /// The greatest value of the formula.
    pub most: Quantity,
    /// The largest allowed difference from these.
    pub within: Quantity,
    /// The measured value; `None` if the checker measured none.
    pub found: Option<Quantity>,
    /// True if the measured value agrees with the formula.
    pub as_claimed: bool,
}

impl Stated {
    /// Returns the least and the greatest value of the formula, and the tolerance.
    fn value(&self, scenario: &Scenario) -> Result<[Quantity; 3], Wrong> {
        let bounds = self.formula.bounds(scenario).map_err(|error| Wrong::at("formula", error))?;
        let quantity = |key, ticks: Ticks| {
            let message = format!("{ticks} is neither a time nor a number, as measures are");
            ticks.quantity().ok_or(Wrong::at(key, message))
        };
        let [least, most] = [quantity("formula", bounds.low)?, quantity("formula", bounds.high)?];
        let within = match (self.within, least) {
            (None, Quantity::Time(_)) => Quantity::Time(WITHIN),
            (None, Quantity::Number(_)) => Quantity::Number(0.0),
            (Some(within), _) if within.is_like(bounds.low) => quantity("within", within)?,
            (Some(within), _) => {
                return Err(Wrong::at("within", format!("{within} is no distance from {bounds}")));
            }
        };
        Ok([least, most, within])
    }
}

impl Scenario {
    /// Compares the measures that have a formula with the findings. It skips measures of checkers
    /// that have no finding.
    pub fn compared(&self, findings: &[Finding]) -> Vec<Compared> {
        let all = self
            .measure
            .iter()
            .flat_map(|(checker, of)| of.iter().map(move |(measure, stated)| (checker, measure, stated)));
        let compared = all.filter_map(|(checker, measure, stated)| {
            let finding = findings.iter().find(|finding| finding.checker == checker)?;
            // In a file each formula has a value. An experiment may replace the steps that a
            // formula refers to by code; then nothing is claimed of the measure.
            let [least, most, within] = stated.value(self).ok()?;
            let found = finding.measure(measure);
            let as_claimed = found.is_some_and(|found| around(least, most, within).contains(found));
            let (checker, measure, formula) = (checker.clone(), measure.clone(), stated.formula.to_string());
            Some(Compared { checker, measure, formula, least, most, within, found, as_claimed })
        });
        compared.collect()
    }
}

fn around(least: Quantity, most: Quantity, within: Quantity) -> Range {
    let range = Range { least: Some(least), most: Some(most) };
    match (within, least, most) {
        (Quantity::Time(within), ..) => range.widened(within),
        (Quantity::Number(within), Quantity::Number(least), Quantity::Number(most)) => Range {
            least: Some(Quantity::Number(least - within)),
            most: Some(Quantity::Number(most + within)),
        },
        _ => range,
    }
}

impl Compared {
    /// Returns the measured value in words.
    fn found(&self) -> String {
        self.found.map_or_else(|| "nothing".to_owned(), |found| found.to_string())
    }

    /// Returns the formula, its value, and if the measure agrees with it.
    pub fn claim(&self) -> String {
        let word = if self.as_claimed { "as found" } else { "NOT AS FOUND" };
        format!("formula  {}, {word}", self.stated())
    }

    fn stated(&self) -> String {
        let Compared { formula, least, most, within, .. } = self;
        let to = if least == most { String::new() } else { format!(" to {most}") };
        let is_exact = matches!(within, Quantity::Number(0.0));
        let within = if is_exact { String::new() } else { format!(" (within {within})") };
        format!("{formula} = {least}{to}{within}")
    }

    /// Describes the disagreement for a person who did not ask for measures; `None` if the measure
    /// agrees.
    pub fn otherwise(&self) -> Option<String> {
        let otherwise = || format!("expected {} {}, found {}", self.measure, self.stated(), self.found());
        (!self.as_claimed).then(otherwise)
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} is {}: {}", self.checker, self.measure, self.found(), self.claim())
    }
}

/// Checks that the checkers and their measures exist, that something is expected of each checker,
/// and that the formulas have values.
pub(super) fn check(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    for (name, measures) in &scenario.measure {
        let Some(checker) = Checker::named(name) else {
            let known = checker::LIST.iter().map(|checker| checker.name);
            return Err(Mistake::unknown(places.of_key(&["measure", name]), "checker", name, known));
        };
        if !scenario.expect.contains_key(name) {
            let message =
                format!("nothing is expected of `{name}`, so that no formula of its measures is judged");
            return Err(Mistake::at(places.of_key(&["measure", name]), message));
        }
        for (measure, stated) in measures {
            let path = ["measure", name, measure];
            if !checker.measures.iter().any(|(known, _)| known == measure) {
                let known = checker.measures.iter().map(|(known, _)| *known);
                let what = format!("measure of {name}");
                return Err(Mistake::unknown(places.of_key(&path), &what, measure, known));
            }
            stated.value(scenario).map_err(|Wrong { key, message }| {
                Mistake::at(places.of_value(&[&path[..], &[key]].concat()), message)
            })?;
        }
    }
    Ok(())
}
