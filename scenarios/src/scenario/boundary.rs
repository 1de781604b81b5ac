//! `[boundary]`: the key along which a scenario's verdict changes, and the formula that its author claims for the place.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Scenario, Ticks, limits::Wrong};

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
    /// Where it should be: terms such as `lease`, `drift`, `latency`, `rtt`, `102ms` or `2 * latency`, added and subtracted.
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
        let formula = self.formula.as_ref();
        formula
            .map_or(Ok(()), |formula| formula.value(scenario).map(drop))
            .map_err(|error| Wrong::at("formula", error))
    }
}

/// A sum of durations, some of which the scenario names.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// How often it is added; below zero, subtracted.
    times: f64,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq)]
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
}

/// The words of a formula.
const WORDS: [(&str, Of); 4] =
    [("lease", Of::Lease), ("drift", Of::Drift), ("latency", Of::Latency), ("rtt", Of::Rtt)];

impl FromStr for Formula {
    type Err = String;

    fn from_str(text: &str) -> Result<Formula, String> {
        let spaced = text.replace('+', " + ").replace('*', " * ");
        let (mut terms, mut sign, mut factor) = (Vec::new(), Some(1.0), 1.0);
        let mut words = spaced.split_whitespace().peekable();
        while let Some(word) = words.next() {
            match (word, sign) {
                ("+", None) => sign = Some(1.0),
                ("-", None) => sign = Some(-1.0),
                (word, Some(by)) if words.peek() == Some(&"*") => {
                    factor *=
                        word.parse::<f64>().map_err(|_| format!("{word:?} is no number to multiply with"))?;
                    words.next();
                    sign = Some(by);
                }
                (word, Some(by)) => {
                    let known = WORDS.iter().find(|(name, _)| *name == word).map(|(_, of)| *of);
                    let of = known.map_or_else(|| word.parse().map(Of::Value), Ok).map_err(|_: String| {
                        let names: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
                        format!("expected a value or one of {}, found {word:?}", names.join(", "))
                    })?;
                    terms.push(Term { times: by * factor, of });
                    (sign, factor) = (None, 1.0);
                }
                (word, None) => return Err(format!("expected + or - before {word:?}")),
            }
        }
        if terms.is_empty() || sign.is_some() {
            return Err(format!("expected a sum such as \"lease - drift - rtt\", found {text:?}"));
        }
        Ok(Formula { text: text.to_owned(), terms })
    }
}

impl Formula {
    /// What it comes to in a scenario.
    ///
    /// # Errors
    /// When a word of it has no fixed value there, or values of several kinds are added.
    pub fn value(&self, scenario: &Scenario) -> Result<Ticks, String> {
        let lock = scenario.lock.values().next();
        let lease = lock.and_then(|lock| lock.lease).map(|lease| Ticks::time(lease.0));
        let lease = || lease.ok_or("the lock has no fixed lease");
        let latency = || match scenario.network.latency {
            crate::units::Draw::Fixed(latency) => Ok(Ticks::time(latency.0)),
            crate::units::Draw::Range(..) => Err("the latency is drawn from a range, so it has no one value"),
        };
        let mut sum: Option<Ticks> = None;
        for Term { times, of } in &self.terms {
            let (times, value) = match of {
                Of::Value(value) => (*times, *value),
                Of::Lease => (*times, lease()?),
                Of::Drift => {
                    (*times, lease()?.times(0.01).plus(Ticks::time(std::time::Duration::from_millis(2)))?)
                }
                Of::Latency => (*times, latency()?),
                Of::Rtt => (2.0 * times, latency()?),
            };
            let term = value.times(times);
            sum = Some(sum.map_or(Ok(term), |sum| sum.plus(term))?);
        }
        sum.ok_or_else(|| "nothing is added".to_owned())
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
        let text = "[node.m]\n[client.c1]\n[lock]\nkind = \"redlock\"\nlease = \"10s\"\n[network]\nlatency = \"1ms\"\n";
        let scenario = &parse("formula.toml", text).expect("a scenario").variants[0].scenario;
        for (formula, value) in [
            ("lease", "10s"),
            ("lease - drift - rtt", "9.896s"),
            ("lease-1s", "expected a value or one of lease, drift, latency, rtt, found \"lease-1s\""),
            ("2 * latency + 100ms", "102ms"),
            ("0.5 * lease - 1s", "4s"),
            ("", "expected a sum such as \"lease - drift - rtt\", found \"\""),
            ("lease -", "expected a sum such as \"lease - drift - rtt\", found \"lease -\""),
            ("lease drift", "expected + or - before \"drift\""),
            ("lease + 2%", "10s and +2% cannot be added"),
        ] {
            let found = formula.parse::<Formula>().and_then(|formula| formula.value(scenario));
            assert_eq!(found.map_or_else(|error| error, |value| value.to_string()), value, "{formula}");
        }
    }
}
