//! Formulas: the expected value of a boundary or a measure, computed from the values of the same
//! file.
//!
//! A formula has the kinds of its values: the sum of times is a time, the quotient of two times is
//! a number, and a number times a rate is a rate. So `lease / (lease - drift) * 100% - 100%` is the
//! rate by which a clock may run fast.

use std::{fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::{Scenario, Ticks, lock};
use crate::units::Draw;

/// The most parentheses that may be open at a time.
const OPEN_MAX: usize = 16;

/// A sum of quantities, some of which are names of values in the scenario; or two sums, the ends of
/// a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    low: Sum,
    /// `None` if it equals `low`.
    high: Option<Sum>,
}

/// The terms. The flag of a term is set if the term is subtracted.
#[derive(Debug, Clone, PartialEq)]
struct Sum(Vec<(bool, Term)>);

/// A value with its factors and divisors, applied from left to right.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    first: Of,
    /// The flag of a value is set if the value is a divisor.
    then: Vec<(bool, Of)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Of {
    /// A plain number.
    Number(f64),
    /// A time or a rate, or a whole number that is written as one.
    Value(Ticks),
    /// The lease of the lock.
    Lease,
    /// The allowance of Redlock for the drift of clocks over the lease: a hundredth of it plus two
    /// milliseconds.
    Drift,
    /// The one-way latency of the network.
    Latency,
    /// The round-trip time of the network: twice the latency.
    Rtt,
    /// The value of the key at this path.
    Key(String),
    /// A sum in parentheses.
    Sum(Sum),
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
        // A `-` may be a part of a word: of a name, or of a negative number.
        let spaced = ["+", "*", "/", "(", ")"]
            .iter()
            .fold(text.to_owned(), |text, sign| text.replace(sign, &format!(" {sign} ")));
        let mut reader = Reader { text, words: spaced.split_whitespace().collect(), at: 0, open: 0 };
        let sum = reader.sum()?;
        match reader.next() {
            None => Ok(sum),
            Some(")") => Err(format!("there is no ( before a ) of {text:?}")),
            Some(word) => Err(format!("expected +, -, * or / before {word:?}")),
        }
    }
}

/// The words of a sum, and the position of the next one.
struct Reader<'a> {
    text: &'a str,
    words: Vec<&'a str>,
    at: usize,
    /// The number of open parentheses.
    open: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    /// Takes the next word if it is one of two signs; true for the second sign, `None` for another
    /// word.
    fn takes(&mut self, signs: [&str; 2]) -> Option<bool> {
        let word = self.words.get(self.at)?;
        let sign = signs.iter().position(|sign| sign == word)?;
        self.at += 1;
        Some(sign == 1)
    }

    fn sum(&mut self) -> Result<Sum, String> {
        let mut terms = vec![(false, self.term()?)];
        while let Some(subtracts) = self.takes(["+", "-"]) {
            terms.push((subtracts, self.term()?));
        }
        Ok(Sum(terms))
    }

    fn term(&mut self) -> Result<Term, String> {
        let mut term = Term { first: self.value()?, then: Vec::new() };
        while let Some(divides) = self.takes(["*", "/"]) {
            term.then.push((divides, self.value()?));
        }
        Ok(term)
    }

    fn value(&mut self) -> Result<Of, String> {
        let Some(word) = self.next() else {
            return Err(format!("expected a sum such as \"lease - drift - rtt\", found {:?}", self.text));
        };
        if word == "(" {
            self.open += 1;
            if self.open > OPEN_MAX {
                return Err(format!("more than {OPEN_MAX} parentheses are open"));
            }
            let sum = self.sum()?;
            self.open -= 1;
            return match self.next() {
                Some(")") => Ok(Of::Sum(sum)),
                None => Err(format!("there is no ) after a ( of {:?}", self.text)),
                Some(word) => Err(format!("expected +, -, *, / or ) before {word:?}")),
            };
        }
        if ["+", "-", "*", "/", ")"].contains(&word) {
            return Err(format!("expected a value before {word:?}"));
        }
        if let Some((_, of)) = WORDS.iter().find(|(name, _)| *name == word) {
            Ok(of.clone())
        } else if let Some(number) = word.parse().ok().filter(|number: &f64| number.is_finite()) {
            Ok(Of::Number(number))
        } else if let Ok(value) = word.parse() {
            Ok(Of::Value(value))
        } else if word.contains('.') {
            Ok(Of::Key(word.to_owned()))
        } else {
            let names = WORDS.map(|(name, _)| name).join(", ");
            Err(format!("expected a value, the path of a key or one of {names}, found {word:?}"))
        }
    }
}

/// The value of a part of a formula.
#[derive(Debug, Clone, Copy)]
enum Amount {
    /// A plain number, whole or not.
    Number(f64),
    /// A time or a rate.
    Much(Ticks),
}

impl Amount {
    fn of(value: Ticks) -> Amount {
        if value.is_like(Ticks::ONE) { Amount::Number(value.number()) } else { Amount::Much(value) }
    }

    fn plus(self, other: Amount) -> Result<Amount, String> {
        match (self, other) {
            (Amount::Number(one), Amount::Number(other)) => Ok(Amount::Number(one + other)),
            (Amount::Much(one), Amount::Much(other)) => Ok(Amount::Much(one.plus(other)?)),
            (one, other) => Err(format!("{one} and {other} cannot be added")),
        }
    }

    fn times(self, other: Amount) -> Result<Amount, String> {
        match (self, other) {
            (Amount::Number(one), Amount::Number(other)) => Ok(Amount::Number(one * other)),
            (Amount::Number(by), Amount::Much(much)) | (Amount::Much(much), Amount::Number(by)) => {
                Ok(Amount::Much(much.times(by)))
            }
            (one, other) => Err(format!("{one} and {other} cannot be multiplied")),
        }
    }

    fn over(self, other: Amount) -> Result<Amount, String> {
        let by = match other {
            Amount::Number(by) => by,
            Amount::Much(much) => much.number(),
        };
        match (self, other) {
            _ if by == 0.0 => Err(format!("{self} cannot be divided by {other}")),
            (Amount::Number(one), Amount::Number(_)) => Ok(Amount::Number(one / by)),
            (Amount::Much(one), Amount::Number(_)) => Ok(Amount::Much(one.times(1.0 / by))),
            (Amount::Much(one), Amount::Much(other)) if one.is_like(other) => {
                Ok(Amount::Number(one.number() / by))
            }
            (one, other) => Err(format!("{one} cannot be divided by {other}")),
        }
    }

    /// Converts to a value of a file, in which every number is whole.
    fn value(self) -> Result<Ticks, String> {
        match self {
            Amount::Much(value) => Ok(value),
            Amount::Number(number) if !number.is_finite() => Err(format!("{number} is no number")),
            // A product may be off by the rounding errors of floats.
            Amount::Number(number) if (number - number.round()).abs() > 1e-9 * number.abs().max(1.0) => {
                Err(format!("{number} is no whole number"))
            }
            Amount::Number(number) => Ok(Ticks::ONE.times(number)),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Number(number) => number.fmt(f),
            Amount::Much(value) => value.fmt(f),
        }
    }
}

impl Sum {
    fn amount(&self, scenario: &Scenario) -> Result<Amount, String> {
        let mut terms = self.0.iter().map(|(subtracts, term)| {
            let amount = term.amount(scenario)?;
            amount.times(Amount::Number(if *subtracts { -1.0 } else { 1.0 }))
        });
        let first = terms.next().ok_or("nothing is added")??;
        terms.try_fold(first, |sum, term| sum.plus(term?))
    }

    fn names(&self, path: &str) -> bool {
        let terms = self.0.iter().map(|(_, term)| term);
        let mut values =
            terms.flat_map(|term| [&term.first].into_iter().chain(term.then.iter().map(|(_, of)| of)));
        values.any(|of| match of {
            Of::Key(key) => key == path,
            Of::Sum(sum) => sum.names(path),
            _ => false,
        })
    }
}

impl Term {
    fn amount(&self, scenario: &Scenario) -> Result<Amount, String> {
        let first = self.first.amount(scenario)?;
        self.then.iter().try_fold(first, |amount, (divides, of)| {
            let by = of.amount(scenario)?;
            if *divides { amount.over(by) } else { amount.times(by) }
        })
    }
}

impl Of {
    fn amount(&self, scenario: &Scenario) -> Result<Amount, String> {
        let lease = || {
            let lease = scenario.lock.values().next().and_then(|lock| lock.lease);
            lease.map(|lease| Ticks::time(lease.0)).ok_or("the lock has no fixed lease")
        };
        let latency = || match scenario.network.latency {
            Draw::Fixed(latency) => Ok(Ticks::time(latency.0)),
            Draw::Range(..) => {
                Err("the latency is drawn from a range, so it has no one value: `[network]` may give it one")
            }
        };
        Ok(match self {
            Of::Number(number) => Amount::Number(*number),
            Of::Value(value) => Amount::of(*value),
            Of::Lease => Amount::of(lease()?),
            Of::Drift => Amount::of(lease()?.times(0.01).plus(Ticks::time(Duration::from_millis(2)))?),
            Of::Latency => Amount::of(latency()?),
            Of::Rtt => Amount::of(latency()?.times(2.0)),
            Of::Key(path) => Amount::of(value_of(path, scenario)?),
            Of::Sum(sum) => sum.amount(scenario)?,
        })
    }
}

/// Returns the value of a key by its path, as in a sweep.
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

/// The values between which a verdict should change. Both ends may be the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least value.
    pub low: Ticks,
    /// The greatest value.
    pub high: Ticks,
}

impl Formula {
    /// Computes the formula in a scenario.
    ///
    /// # Errors
    /// When a word of it has no fixed value there, when values of several kinds are added,
    /// multiplied or divided, or when something is divided by zero.
    pub fn bounds(&self, scenario: &Scenario) -> Result<Bounds, String> {
        let low = self.low.amount(scenario)?.value()?;
        let high = self.high.as_ref().map_or(Ok(low), |high| high.amount(scenario)?.value())?;
        if low <= high { Ok(Bounds { low, high }) } else { Err(format!("from {low} to {high} is no range")) }
    }

    /// Returns true if the formula contains the value of this key.
    pub(super) fn names(&self, path: &str) -> bool {
        self.high.iter().chain([&self.low]).any(|sum| sum.names(path))
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
    use crate::file::scenario::parse;

    #[test]
    fn a_formula_is_computed_from_the_scenario() {
        let text = "[node.m]\nconfig = { hz = \"100\" }\n[client.c1]\nsteps = [{ at = \"3s\", try_acquire = {} }]\n[lock]\n\
                    kind = \"redlock\"\nlease = \"10s\"\n[network]\nlatency = \"1ms\"\n[run]\nstorm = \"60s\"\n\
                    [fault.stop]\npause = \"m\"\nat = \"5s..6s\"\nfor = \"1s\"\n";
        let scenario = &parse("formula.toml", text).expect("a scenario").variants[0].scenario;
        let nested = "(".repeat(100_000);
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
            // The rate by which a clock may be fast: the validity is 9.898 s of 10 s.
            ("lease / (lease - drift) * 100% - 100%", "+1.030511%"),
            ("(lease - drift)/(2*latency)", "4949"),
            ("lease / 3", "3.333333333s"),
            ("2% / 1%", "2"),
            ("12 / 4 / 3", "1"),
            ("lease / latency * latency", "10s"),
            ("-1 * (lease - (1s - latency))", "-9.001s"),
            ("lease / 3s", "3.33333333333333"),
            ("lease / 0", "10s cannot be divided by 0"),
            ("lease / 0s", "10s cannot be divided by 0ms"),
            ("1s / (latency - latency)", "1s cannot be divided by 0ms"),
            ("lease / 1%", "10s cannot be divided by +1%"),
            ("1 / lease", "1 cannot be divided by 10s"),
            ("lease + lease / lease", "10s and 1 cannot be added"),
            ("lease /", "expected a sum such as"),
            ("lease / / 2", "expected a value before \"/\""),
            ("(lease - drift", "there is no ) after a ( of \"(lease - drift\""),
            ("lease - drift)", "there is no ( before a ) of \"lease - drift)\""),
            ("(lease drift)", "expected +, -, *, / or ) before \"drift\""),
            ("lease ()", "expected +, -, * or / before \"(\""),
            ("()", "expected a value before \")\""),
            (&*nested, "more than 16 parentheses are open"),
            ("inf * lease", "expected a value, the path of a key or one of"),
            ("", "expected a sum such as \"lease - drift - rtt\", found \"\""),
            ("lease -", "expected a sum such as \"lease - drift - rtt\", found \"lease -\""),
            ("lease - * 2", "expected a value before \"*\""),
            ("lease drift", "expected +, -, * or / before \"drift\""),
            ("lease + 2%", "10s and +2% cannot be added"),
        ] {
            let found = formula.parse::<Formula>().and_then(|formula| formula.bounds(scenario));
            let found = found.map_or_else(|error| error, |bounds| bounds.to_string());
            assert!(found.starts_with(value), "{formula}: {found}");
        }
    }
}
