//! `[boundary]`: the key along which a scenario's verdict changes, and the formula that its author claims for the place.

use std::{fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::{Scenario, Ticks, limits::Wrong, lock};
use crate::units::Draw;

/// Where a verdict changes: `[boundary]`; `lockstorm boundary` finds the place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boundary {
    /// The key that is moved, by its path, such as `fault.jump.clock_step.by`.
    pub key: String,
    /// Its least value.
    pub from: Ticks,
    /// Its largest value.
    pub to: Ticks,
    /// How near the place is to be found; a ten-thousandth of the range if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Ticks>,
    /// Whose verdict; that of the first checker that something is expected of, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checker: Option<String>,
    /// Where it should be: a sum of values such as `102ms`, of `lease`, `drift`, `latency` and `rtt`, and of keys by their paths, such as
    /// `sentinel.s.down_after`, each perhaps multiplied (`2 * latency`); or two sums with `..` between them, where the scenario only
    /// bounds the place.
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

/// A sum of quantities, some of which the scenario names; or the two between which the place lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    low: Sum,
    /// Only where it is another one.
    high: Option<Sum>,
}

#[derive(Debug, Clone, PartialEq)]
struct Sum(Vec<Term>);

/// A product.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// What the numbers in it come to; below zero where it is subtracted.
    times: f64,
    of: Vec<Of>,
}

#[derive(Debug, Clone, PartialEq)]
enum Of {
    /// So much.
    Value(Ticks),
    /// The lease of the lock.
    Lease,
    /// What Redlock allows for the drift of clocks over the lease: a hundredth and two milliseconds.
    Drift,
    /// The one-way latency of the network.
    Latency,
    /// There and back.
    Rtt,
    /// The value of this key.
    Key(String),
}

/// The words of a formula.
const WORDS: [(&str, Of); 4] =
    [("lease", Of::Lease), ("drift", Of::Drift), ("latency", Of::Latency), ("rtt", Of::Rtt)];

impl FromStr for Formula {
    type Err = String;

    fn from_str(text: &str) -> Result<Formula, String> {
        let (low, high) = match text.split_once("..") {
            None => (text.parse()?, None),
            Some((low, high)) => (low.parse()?, Some(high.parse()?)),
        };
        Ok(Formula { text: text.to_owned(), low, high })
    }
}

impl FromStr for Sum {
    type Err = String;

    fn from_str(text: &str) -> Result<Sum, String> {
        let spaced = text.replace('+', " + ").replace('*', " * ");
        let mut terms: Vec<Term> = Vec::new();
        let mut before = "+";
        for word in spaced.split_whitespace() {
            let is_sign = ["+", "-", "*"].contains(&word);
            before = match (before, word) {
                ("", sign) if is_sign => sign,
                ("", word) => return Err(format!("expected +, - or * before {word:?}")),
                (_, sign) if is_sign => return Err(format!("expected a value before {sign:?}")),
                (before, word) => {
                    if before != "*" {
                        terms.push(Term { times: if before == "-" { -1.0 } else { 1.0 }, of: Vec::new() });
                    }
                    if let Some(term) = terms.last_mut() {
                        term.multiply(word)?;
                    }
                    ""
                }
            };
        }
        if before.is_empty() {
            Ok(Sum(terms))
        } else {
            Err(format!("expected a sum such as \"lease - drift - rtt\", found {text:?}"))
        }
    }
}

impl Term {
    fn multiply(&mut self, word: &str) -> Result<(), String> {
        if let Some((_, of)) = WORDS.iter().find(|(name, _)| *name == word) {
            self.of.push(of.clone());
        } else if let Some(number) = word.parse().ok().filter(|number: &f64| number.is_finite()) {
            self.times *= number;
        } else if let Ok(value) = word.parse() {
            self.of.push(Of::Value(value));
        } else if word.contains('.') {
            self.of.push(Of::Key(word.to_owned()));
        } else {
            let names = WORDS.map(|(name, _)| name).join(", ");
            return Err(format!("expected a value, the path of a key or one of {names}, found {word:?}"));
        }
        Ok(())
    }

    fn value(&self, scenario: &Scenario) -> Result<Ticks, String> {
        let (mut times, mut quantity) = (self.times, Ticks::ONE);
        for of in &self.of {
            let value = of.value(scenario)?;
            if value.is_like(Ticks::ONE) {
                times *= value.number();
            } else if quantity.is_like(Ticks::ONE) {
                quantity = value;
            } else {
                return Err(format!("{quantity} and {value} cannot be multiplied"));
            }
        }
        Ok(quantity.times(times))
    }
}

impl Of {
    fn value(&self, scenario: &Scenario) -> Result<Ticks, String> {
        let lease = || {
            let lease = scenario.lock.values().next().and_then(|lock| lock.lease);
            lease.map(|lease| Ticks::time(lease.0)).ok_or("the lock has no fixed lease")
        };
        let latency = || match scenario.network.latency {
            Draw::Fixed(latency) => Ok(Ticks::time(latency.0)),
            Draw::Range(..) => Err("the latency is drawn from a range, so it has no one value"),
        };
        Ok(match self {
            Of::Value(value) => *value,
            Of::Lease => lease()?,
            Of::Drift => lease()?.times(0.01).plus(Ticks::time(Duration::from_millis(2)))?,
            Of::Latency => latency()?,
            Of::Rtt => latency()?.times(2.0),
            Of::Key(path) => value_of(path, scenario)?,
        })
    }
}

/// The value of a key, by the path that a sweep would give it.
fn value_of(path: &str, scenario: &Scenario) -> Result<Ticks, String> {
    let whole = serde_json::to_value(scenario).map_err(|error| error.to_string())?;
    let mut at = Some(&whole);
    let mut keys = path.split('.').peekable();
    while let Some(key) = keys.next() {
        at = at.and_then(|at| match at {
            Value::Array(items) => key.parse().ok().and_then(|number: usize| items.get(number)),
            at => at.get(key),
        });
        // In a file the only lock needs no name.
        if let (Some(Value::Object(locks)), "lock") = (at, key)
            && keys.peek() != Some(&lock::ONLY)
        {
            at = locks.get(lock::ONLY).filter(|_| locks.len() == 1).or(at);
        }
    }
    match at {
        None | Some(Value::Null) => Err(format!("the scenario says nothing of {path}")),
        Some(Value::String(text)) => {
            text.parse().map_err(|_| format!("{path} is {text:?}, which is no one value"))
        }
        Some(other) => {
            Ticks::deserialize(other).map_err(|_| format!("{path} is {other}, which is no one value"))
        }
    }
}

/// Where a verdict should change: between two values, or at one that is both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// No sooner.
    pub low: Ticks,
    /// No later.
    pub high: Ticks,
}

impl Formula {
    /// What it comes to in a scenario.
    ///
    /// # Errors
    /// When a word of it has no fixed value there, or values of several kinds are added or multiplied.
    pub fn bounds(&self, scenario: &Scenario) -> Result<Bounds, String> {
        let low = self.low.value(scenario)?;
        let high = self.high.as_ref().map_or(Ok(low), |high| high.value(scenario))?;
        if low <= high { Ok(Bounds { low, high }) } else { Err(format!("from {low} to {high} is no range")) }
    }

    fn names(&self, path: &str) -> bool {
        let terms = self.high.iter().chain([&self.low]).flat_map(|sum| &sum.0);
        terms.flat_map(|term| &term.of).any(|of| matches!(of, Of::Key(key) if key == path))
    }
}

impl Sum {
    fn value(&self, scenario: &Scenario) -> Result<Ticks, String> {
        let mut terms = self.0.iter().map(|term| term.value(scenario));
        let first = terms.next().ok_or("nothing is added")??;
        terms.try_fold(first, |sum, term| sum.plus(term?))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bounds { low, high } = self;
        if low == high { low.fmt(f) } else { write!(f, "{low} to {high}") }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Formula, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl JsonSchema for Formula {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Formula".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    #[test]
    fn a_formula_is_computed_from_the_scenario() {
        let text = "[node.m]\nconfig = { hz = \"100\" }\n[client.c1]\nsteps = [{ at = \"3s\", try_acquire = {} }]\n[lock]\n\
                    kind = \"redlock\"\nlease = \"10s\"\n[network]\nlatency = \"1ms\"\n[run]\nstorm = \"60s\"\n\
                    [fault.stop]\npause = \"m\"\nat = \"5s..6s\"\nfor = \"1s\"\n";
        let scenario = &parse("formula.toml", text).expect("a scenario").variants[0].scenario;
        for (formula, value) in [
            ("lease", "10s"),
            ("lease - drift - rtt", "9.896s"),
            (
                "lease-1s",
                "expected a value, the path of a key or one of lease, drift, latency, rtt, found \"lease-1s\"",
            ),
            ("2 * latency + 100ms", "102ms"),
            ("0.5 * lease - 1s", "4s"),
            ("lease * 0.5 * 3 - 1s", "14s"),
            ("3 + 4 * 2", "11"),
            ("client.c1.steps.0.at + lock.watchdog + fault.stop.for", "34s"),
            ("lock.lease", "10s"),
            ("lock.lock.lease", "10s"),
            ("node.m.config.hz * 1ms", "100ms"),
            ("1s * node.m.config.hz", "100s"),
            ("lease .. lease + fault.stop.for", "10s to 11s"),
            ("1e99 * lease + lease", "18446744073.709551615s"),
            ("lease .. 1s", "from 10s to 1s is no range"),
            ("lease .. 2%", "from 10s to +2% is no range"),
            ("fault.stop.at", "fault.stop.at is \"5s..6s\", which is no one value"),
            ("client.c1.steps.1.at", "the scenario says nothing of client.c1.steps.1.at"),
            ("lock.node_timeout + 1s", "the scenario says nothing of lock.node_timeout"),
            ("client.c1.steps", "client.c1.steps is "),
            ("lease * latency", "10s and 1ms cannot be multiplied"),
            ("inf * lease", "expected a value, the path of a key or one of"),
            ("", "expected a sum such as \"lease - drift - rtt\", found \"\""),
            ("lease -", "expected a sum such as \"lease - drift - rtt\", found \"lease -\""),
            ("lease - * 2", "expected a value before \"*\""),
            ("lease drift", "expected +, - or * before \"drift\""),
            ("lease + 2%", "10s and +2% cannot be added"),
        ] {
            let found = formula.parse::<Formula>().and_then(|formula| formula.bounds(scenario));
            let found = found.map_or_else(|error| error, |bounds| bounds.to_string());
            assert!(found.starts_with(value), "{formula}: {found}");
        }
    }
}
