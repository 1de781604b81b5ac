//! `[measure]`: what a measure of a checker should come to, by a formula of what the scenario says.
//!
//! Not every number of a claim is a place on an axis. How long a lock cannot be had, or how many
//! commands a hand-off costs, is measured in each run, and follows from leases, time-outs and
//! moments that the same file has.

use std::{fmt, time::Duration};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Formula, Scenario, Ticks, Wrong, error::Mistake, places::Places};
use crate::judge::{
    checker::{self, Checker},
    verdict::{Finding, Quantity, Range},
};

/// How far from its formula a time may be, unless a file says: servers count in milliseconds.
const WITHIN: Duration = Duration::from_millis(1);

/// What measures should come to, by checker and name.
pub type Measures = IndexMap<String, IndexMap<String, Stated>>;

/// What a measure should come to: `[measure]`, as `progress.stalled = { formula = "lease - 1s",
/// within = "5ms" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// A sum as in the formula of a boundary, or two with `..` between them, where the scenario
    /// only bounds the measure. What comes to less than nothing is nothing, because no measure is
    /// negative.
    pub formula: Formula,
    /// How far from it the measure may be; a millisecond of a time, as servers count, and nothing
    /// of a number, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Ticks>,
}

/// A measure of a run beside what its formula comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Whose measure.
    pub checker: String,
    /// Its name.
    pub measure: String,
    /// The formula, as the file has it.
    pub formula: String,
    /// What it comes to: no less than this.
    pub least: Quantity,
    /// No more than this.
    pub most: Quantity,
    /// How far from there the measure may be.
    pub within: Quantity,
    /// What was measured; nothing where the checker measured none.
    pub found: Option<Quantity>,
    /// Whether that is what is claimed.
    pub as_claimed: bool,
}

impl Stated {
    /// What the formula comes to, and how far from it a measure may be.
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
    /// The measures that have a formula, beside what was found; of a checker that decides nothing
    /// there is none to compare.
    pub fn compared(&self, findings: &[Finding]) -> Vec<Compared> {
        let all = self
            .measure
            .iter()
            .flat_map(|(checker, of)| of.iter().map(move |(measure, stated)| (checker, measure, stated)));
        let compared = all.filter_map(|(checker, measure, stated)| {
            let finding = findings.iter().find(|finding| finding.checker == checker)?;
            // In a file each formula has a value. An experiment may put code in the place of the
            // steps that a formula is about: then nothing is claimed of the measure.
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
    /// What was found and what is claimed, without the name.
    fn found(&self) -> String {
        self.found.map_or_else(|| "nothing".to_owned(), |found| found.to_string())
    }

    /// The formula, what it comes to, and whether that was found.
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

    /// What is wrong with it, for a person who did not ask; nothing if it is as claimed.
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

/// That there are such checkers with such measures, of which something is expected, and that the
/// formulas have values.
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
