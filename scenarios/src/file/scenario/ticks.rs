//! Values that have others between them: the axes of sweeps, boundaries and formulas go through
//! them in whole numbers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::de::DeValue;

use crate::{
    judge::verdict::Quantity,
    units::{Rate, Span, Step},
};

/// What the ticks of a value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Ones.
    Number,
    /// Nanoseconds.
    Time,
    /// Hundred-millionths, as fine as a rate is printed.
    Rate,
}

/// A value that has others between itself and the next: in whole numbers, so that a grid is the
/// same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    pub(super) scale: Scale,
    pub(super) ticks: i128,
}

impl Ticks {
    /// The number one.
    pub(super) const ONE: Ticks = Ticks { scale: Scale::Number, ticks: 1 };

    pub(super) fn read(value: &DeValue<'_>) -> Option<Ticks> {
        match value {
            DeValue::Integer(number) => {
                let ticks = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
                Some(Ticks { scale: Scale::Number, ticks: ticks.into() })
            }
            DeValue::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// How many steps of this length lead to a larger value, the last of them perhaps shorter.
    pub fn steps(self, to: Ticks, step: Ticks) -> u64 {
        let steps = (to.ticks - self.ticks + step.ticks.max(1) - 1) / step.ticks.max(1);
        u64::try_from(steps).unwrap_or(0)
    }

    /// The value so many steps on, and no larger than `to`.
    pub fn step(self, to: Ticks, step: Ticks, at: u64) -> Ticks {
        Ticks { ticks: (self.ticks + step.ticks.max(1) * i128::from(at)).min(to.ticks), ..self }
    }

    /// How far it is to another value of the same scale.
    pub fn distance(self, other: Ticks) -> Ticks {
        Ticks { ticks: (other.ticks - self.ticks).abs(), ..self }
    }

    /// The value so many of `of` equal parts of the way to another one.
    pub fn part(self, other: Ticks, at: u32, of: u32) -> Ticks {
        let ticks = self.ticks + (other.ticks - self.ticks) * i128::from(at) / i128::from(of.max(1));
        Ticks { ticks, ..self }
    }

    /// A length of time.
    pub fn time(length: std::time::Duration) -> Ticks {
        Ticks { scale: Scale::Time, ticks: i128::try_from(length.as_nanos()).unwrap_or(i128::MAX) }
    }

    /// So many times the value.
    pub fn times(self, by: f64) -> Ticks {
        Ticks { ticks: (self.ticks as f64 * by).round() as i128, ..self }
    }

    /// The sum of two values.
    ///
    /// # Errors
    /// When they are of different kinds.
    pub fn plus(self, other: Ticks) -> Result<Ticks, String> {
        if !self.is_like(other) {
            return Err(format!("{self} and {other} cannot be added"));
        }
        Ok(Ticks { ticks: self.ticks.saturating_add(other.ticks), ..self })
    }

    /// Whether both are times, both rates or both plain numbers.
    pub fn is_like(self, other: Ticks) -> bool {
        self.scale == other.scale
    }

    /// The value as a number: seconds of a time, percent of a rate.
    pub fn number(self) -> f64 {
        let ticks = self.ticks as f64;
        match self.scale {
            Scale::Number => ticks,
            Scale::Time => ticks / 1e9,
            Scale::Rate => ticks / 1e6,
        }
    }

    /// The value as what checkers measure, which is never less than nothing; `None` of a rate,
    /// which none of them measures.
    pub fn quantity(self) -> Option<Quantity> {
        let ticks = self.ticks.max(0);
        match self.scale {
            Scale::Number => Some(Quantity::Number(ticks as f64)),
            Scale::Time => {
                let nanos = u64::try_from(ticks).unwrap_or(u64::MAX);
                Some(Quantity::Time(std::time::Duration::from_nanos(nanos)))
            }
            Scale::Rate => None,
        }
    }

    /// The value as TOML.
    pub(super) fn toml(self) -> String {
        if self.scale == Scale::Number { self.to_string() } else { quoted(&self.to_string()) }
    }
}

impl PartialOrd for Ticks {
    fn partial_cmp(&self, other: &Ticks) -> Option<std::cmp::Ordering> {
        (self.scale == other.scale).then(|| self.ticks.cmp(&other.ticks))
    }
}

impl std::str::FromStr for Ticks {
    type Err = String;

    fn from_str(text: &str) -> Result<Ticks, String> {
        if let Ok(number) = text.trim().parse::<i64>() {
            return Ok(Ticks { scale: Scale::Number, ticks: number.into() });
        }
        if let Ok(Step(nanos)) = text.parse() {
            return Ok(Ticks { scale: Scale::Time, ticks: nanos.into() });
        }
        let Ok(Rate(rate)) = text.parse() else {
            return Err(format!("expected a number, a duration with its unit or a rate, found {text:?}"));
        };
        Ok(Ticks { scale: Scale::Rate, ticks: (rate * 1e8).round() as i128 })
    }
}

impl<'de> Deserialize<'de> for Ticks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Ticks, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Ticks;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, a duration with its unit or a rate")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Ticks, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Ticks, E> {
                Ok(Ticks { scale: Scale::Number, ticks: number.into() })
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Ticks, E> {
                Ok(Ticks { scale: Scale::Number, ticks: number.into() })
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Serialize for Ticks {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.ticks) {
            Ok(number) if self.scale == Scale::Number => to.serialize_i64(number),
            _ => to.collect_str(self),
        }
    }
}

impl JsonSchema for Ticks {
    fn schema_name() -> Cow<'static, str> {
        "Ticks".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"] })
    }
}

impl std::fmt::Display for Ticks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.scale {
            Scale::Number => write!(f, "{}", self.ticks),
            Scale::Time => {
                // A duration has no sign, and a step of a clock needs none where it goes forward.
                let span = Span(std::time::Duration::from_nanos(self.ticks.unsigned_abs() as u64));
                write!(f, "{}{span}", if self.ticks < 0 { "-" } else { "" })
            }
            Scale::Rate => Rate(self.ticks as f64 / 1e8).fmt(f),
        }
    }
}

/// A text as TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
