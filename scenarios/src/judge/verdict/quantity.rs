//! The measures of checkers, and the ranges in which they are expected to lie.

use std::{cmp::Ordering, fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::Span;

/// A number with a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// The name, such as `overlap`.
    pub name: &'static str,
    /// A length of time, or a plain number such as a count.
    pub quantity: Quantity,
    /// For a count of owners: their names. Printed if the count is not as expected.
    #[serde(skip)]
    pub owners: Vec<String>,
}

impl Measure {
    /// Returns a measure that is printed as a time, such as `1.5s`.
    pub fn time(name: &'static str, length: Duration) -> Self {
        Self { name, quantity: Quantity::Time(length), owners: Vec::new() }
    }

    /// Returns a measure that counts; a count above 2^53 is rounded to a float.
    pub fn count(name: &'static str, count: u64) -> Self {
        Self { name, quantity: Quantity::Number(count as f64), owners: Vec::new() }
    }

    /// Returns a measure that counts the owners of these names.
    pub fn owners(name: &'static str, owners: Vec<String>) -> Self {
        let count = Self::count(name, owners.len() as u64);
        Self { owners, ..count }
    }

    /// Makes a measure of a plain number, such as an average.
    pub fn number(name: &'static str, number: f64) -> Self {
        Self { name, quantity: Quantity::Number(number), owners: Vec::new() }
    }
}

/// A length of time or a plain number.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub enum Quantity {
    /// A length of time.
    Time(Duration),
    /// A count or an average.
    Number(f64),
}

impl Quantity {
    /// Orders quantities of one kind by their size, and times before numbers.
    pub fn total_cmp(&self, other: &Quantity) -> Ordering {
        match (self, other) {
            (Self::Time(one), Self::Time(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Time(_), Self::Number(_)) => Ordering::Less,
            (Self::Number(_), Self::Time(_)) => Ordering::Greater,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Rounded down to microseconds, which is precise enough for a reader.
            Self::Time(length) => Span(Duration::from_micros(length.as_micros() as u64)).fmt(f),
            Self::Number(number) if number.fract() == 0.0 => write!(f, "{number:.0}"),
            Self::Number(number) => write!(f, "{number:.2}"),
        }
    }
}

impl FromStr for Quantity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Self::Number(number)),
            _ => text.trim().parse::<Span>().map(|span| Self::Time(span.0)),
        }
    }
}

impl Serialize for Quantity {
    /// Writes times in milliseconds, so that programs that read the JSON can compute with them.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Time(length) => {
                #[derive(Serialize)]
                struct Milliseconds {
                    ms: f64,
                }
                Milliseconds { ms: length.as_nanos() as f64 / 1e6 }.serialize(to)
            }
            Self::Number(number) => to.serialize_f64(*number),
        }
    }
}

/// The range in which a measure is expected to lie, ends included: `20s..`, `..2s`, `90ms..98ms`,
/// `3`, and `94ms±2ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least value; `None` if the range has no lower end.
    pub least: Option<Quantity>,
    /// The greatest value; `None` if the range has no upper end.
    pub most: Option<Quantity>,
}

impl Range {
    /// Returns true if the quantity lies in the range. A time never lies in a range of numbers.
    pub fn contains(&self, quantity: Quantity) -> bool {
        let same_kind =
            |bound: Quantity| matches!(bound, Quantity::Time(_)) == matches!(quantity, Quantity::Time(_));
        let above = self.least.is_none_or(|least| same_kind(least) && quantity >= least);
        above && self.most.is_none_or(|most| same_kind(most) && quantity <= most)
    }

    /// Returns the range with each end that is a time moved outward by this length.
    #[must_use]
    pub fn widened(&self, by: Duration) -> Range {
        let moved = |end: Quantity, to: fn(Duration, Duration) -> Duration| match end {
            Quantity::Time(time) => Quantity::Time(to(time, by)),
            number @ Quantity::Number(_) => number,
        };
        Range {
            least: self.least.map(|least| moved(least, Duration::saturating_sub)),
            most: self.most.map(|most| moved(most, Duration::saturating_add)),
        }
    }
}

const EXPECTED: &str = r#"a range such as "20s..", "..2s", "90ms..98ms", "94ms±2ms" or "3..""#;

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("expected {EXPECTED}, found {text:?}: {why}");
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse::<Quantity>().map(Some).map_err(|error| wrong(&error)),
        };
        let range = if let Some((least, most)) = text.split_once("..") {
            Self { least: end(least)?, most: end(most)? }
        } else if let Some((middle, give)) = text.split_once('±') {
            match (end(middle)?, end(give)?) {
                (Some(Quantity::Time(middle)), Some(Quantity::Time(give))) => Self {
                    least: Some(Quantity::Time(middle.saturating_sub(give))),
                    most: Some(Quantity::Time(middle.saturating_add(give))),
                },
                (Some(Quantity::Number(middle)), Some(Quantity::Number(give))) => Self {
                    least: Some(Quantity::Number((middle - give).max(0.0))),
                    most: Some(Quantity::Number(middle + give)),
                },
                _ => return Err(wrong("both sides of ± must be of one kind")),
            }
        } else {
            Self { least: end(text)?, most: end(text)? }
        };
        match (range.least, range.most) {
            (None, None) => Err(wrong("it has no end")),
            (Some(Quantity::Time(_)), Some(Quantity::Number(_)))
            | (Some(Quantity::Number(_)), Some(Quantity::Time(_))) => {
                Err(wrong("one end is a time, the other is not"))
            }
            (Some(least), Some(most)) if least > most => Err(wrong("it ends before it begins")),
            _ => Ok(range),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (Some(least), Some(most)) if least == most => least.fmt(f),
            (least, most) => {
                least.map_or(Ok(()), |least| least.fmt(f))?;
                f.write_str("..")?;
                most.map_or(Ok(()), |most| most.fmt(f))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Range;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Range, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Range, E> {
                self.visit_str(&count.to_string())
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Range, E> {
                self.visit_str(&count.to_string())
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_ends_and_no_more() {
        for (range, inside, outside) in [
            ("20s..", ["20s", "3h"], ["19.999s", "21"]),
            ("..2s", ["0ms", "2s"], ["2001ms", "1"]),
            ("90ms..98ms", ["90ms", "98ms"], ["89ms", "99ms"]),
            ("94ms±2ms", ["92ms", "96ms"], ["91ms", "97ms"]),
            ("3", ["3", "3.0"], ["2", "4"]),
            ("1..3", ["1", "3"], ["0", "4"]),
        ] {
            let parsed: Range = range.parse().unwrap();
            for quantity in inside {
                assert!(parsed.contains(quantity.parse().unwrap()), "{quantity} in {range}");
            }
            for quantity in outside {
                assert!(!parsed.contains(quantity.parse().unwrap()), "{quantity} not in {range}");
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused_with_an_example() {
        for text in ["", "..", "2s..1s", "2s..3", "1s±3", "soon", "-1"] {
            let error = text.parse::<Range>().unwrap_err();
            assert!(error.contains("such as \"20s..\""), "{text}: {error}");
        }
    }
}
