//! Values on a scale with others between them, as the axes of sweeps, boundaries and formulas need
//! them, in whole numbers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::de::DeValue;

use crate::{
    judge::verdict::Quantity,
    units::{Rate, Span, Step},
};

/// The unit of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Ones.
    Number,
    /// Nanoseconds.
    Time,
    /// Hundred-millionths, the precision with which a rate is printed.
    Rate,
}

/// A number, a time or a rate as a whole number of ticks, so that a grid is the same on every
/// machine.
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

    /// Returns the number of steps of this length to a larger value. The last step may be shorter.
    pub fn steps(self, to: Ticks, step: Ticks) -> u64 {
        let steps = (to.ticks - self.ticks + step.ticks.max(1) - 1) / step.ticks.max(1);
        u64::try_from(steps).unwrap_or(0)
    }

    /// Returns the value after this number of steps, at most `to`.
    pub fn step(self, to: Ticks, step: Ticks, at: u64) -> Ticks {
        Ticks { ticks: (self.ticks + step.ticks.max(1) * i128::from(at)).min(to.ticks), ..self }
    }

    /// Returns the distance to another value of the same scale.
    pub fn distance(self, other: Ticks) -> Ticks {
        Ticks { ticks: (other.ticks - self.ticks).abs(), ..self }
    }

    /// Returns the value at `at` of `of` equal parts of the way to another value.
    pub fn part(self, other: Ticks, at: u32, of: u32) -> Ticks {
        let ticks = self.ticks + (other.ticks - self.ticks) * i128::from(at) / i128::from(of.max(1));
        Ticks { ticks, ..self }
    }

    /// Makes a value of a length of time.
    pub fn time(length: std::time::Duration) -> Ticks {
        Ticks { scale: Scale::Time, ticks: i128::try_from(length.as_nanos()).unwrap_or(i128::MAX) }
    }

    /// Multiplies the value, and rounds it to whole ticks.
    pub fn times(self, by: f64) -> Ticks {
        Ticks { ticks: (self.ticks as f64 * by).round() as i128, ..self }
    }

    /// Adds two values.
    ///
    /// # Errors
    /// When they are of different kinds.
    pub fn plus(self, other: Ticks) -> Result<Ticks, String> {
        if !self.is_like(other) {
            return Err(format!("{self} and {other} cannot be added"));
        }
        Ok(Ticks { ticks: self.ticks.saturating_add(other.ticks), ..self })
    }

    /// Returns true if both are times, both rates or both plain numbers.
    pub fn is_like(self, other: Ticks) -> bool {
        self.scale == other.scale
    }

    /// Returns the value as a number: a time in seconds, a rate in percent.
    pub fn number(self) -> f64 {
        let ticks = self.ticks as f64;
        match self.scale {
            Scale::Number => ticks,
            Scale::Time => ticks / 1e9,
            Scale::Rate => ticks / 1e6,
        }
    }

    /// Converts the value to a measure, in which a negative value becomes zero; `None` for a rate,
    /// because no checker measures rates.
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

    /// Returns the value as TOML.
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
                // A duration has no sign, and neither has a step of a clock forward.
                let span = Span(std::time::Duration::from_nanos(self.ticks.unsigned_abs() as u64));
                write!(f, "{}{span}", if self.ticks < 0 { "-" } else { "" })
            }
            Scale::Rate => Rate(self.ticks as f64 / 1e8).fmt(f),
        }
    }
}

/// Returns a text as TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
