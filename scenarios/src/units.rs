//! Quantities in the notation of scenario files: durations, clock steps, rates, and ranges from
//! which a seed draws.

use std::{fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A quantity that is written as text with a unit, and that can be drawn from a range.
pub trait Quantity: Copy + PartialOrd + fmt::Display + FromStr<Err = String> {
    /// A regular expression that editors check.
    const PATTERN: &'static str;
    /// A description with examples, for errors.
    const EXPECTED: &'static str;
    /// Returns the quantity at `fraction` (0 to 1) of the way from `low` to `high`.
    fn between(low: Self, high: Self, fraction: f64) -> Self;
}

/// A length of time, such as `30s`, `1.5ms` or `2m`. Never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);

impl Span {
    /// Makes a span of this number of milliseconds.
    pub const fn millis(ms: u64) -> Span {
        Span(Duration::from_millis(ms))
    }

    /// Makes a span of this number of seconds.
    pub const fn secs(secs: u64) -> Span {
        Span(Duration::from_secs(secs))
    }
}

/// Returns a length of time in whole milliseconds, as commands and messages need it. A length
/// beyond the range of `u64` becomes its maximum.
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A step of a clock in nanoseconds, such as `+31s` or `-20s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Step(pub i64);

/// The rate by which a clock runs faster than true time, as a fraction: `+2%`, `-300ppm`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate(pub f64);

/// The units of time, largest first, in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The reason why a quantity cannot be read.
enum Misread {
    /// It is not a number with a unit.
    NoQuantity,
    /// It has more nanoseconds than a clock can show.
    TooLong,
}

/// The longest span, in hours: some 292 years.
const HOURS_MAX: i64 = i64::MAX / UNITS[0].1 as i64;

impl Misread {
    fn of<Q: Quantity>(self, found: &str) -> String {
        match self {
            Misread::NoQuantity => expected::<Q>(found),
            Misread::TooLong => format!("{found:?} is too long: at most {HOURS_MAX}h can be"),
        }
    }
}

fn nanos(text: &str) -> Result<i64, Misread> {
    let (number, unit) = number_and_unit(text).ok_or(Misread::NoQuantity)?;
    in_nanos(number, unit).and_then(|nanos| i64::try_from(nanos).map_err(|_| Misread::TooLong))
}

fn number_and_unit(text: &str) -> Option<(&str, u64)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !whole.is_empty() && !number.ends_with('.') && all_digits(whole) && all_digits(fraction);
    is_number.then_some((number, unit))
}

/// Converts to nanoseconds with whole numbers only, so that a scenario means the same on every
/// machine.
fn in_nanos(number: &str, unit: u64) -> Result<u64, Misread> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // There are only digits, so a number that cannot be parsed is too large.
    let whole: u64 = whole.parse().map_err(|_| Misread::TooLong)?;
    let mut nanos = whole.checked_mul(unit).ok_or(Misread::TooLong)?;
    let mut share = unit;
    for digit in fraction.bytes() {
        // Finer than a nanosecond.
        if (share == 0 || !share.is_multiple_of(10)) && digit != b'0' {
            return Err(Misread::NoQuantity);
        }
        share /= 10;
        nanos = nanos.checked_add(u64::from(digit - b'0') * share).ok_or(Misread::TooLong)?;
    }
    Ok(nanos)
}

fn write_nanos(nanos: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if nanos == 0 {
        return f.write_str("0ms");
    }
    // Hours and minutes only for whole multiples; people read 90s better than 1.5m.
    let whole = UNITS[..2].iter().find(|(_, unit)| nanos.is_multiple_of(*unit));
    let (name, unit) =
        whole.or_else(|| UNITS[2..].iter().find(|(_, unit)| nanos >= *unit)).expect("a nanosecond fits");
    write!(f, "{}", nanos / unit)?;
    if !nanos.is_multiple_of(*unit) {
        let digits = unit.ilog10() as usize;
        let fraction = format!("{:0digits$}", nanos % unit);
        write!(f, ".{}", fraction.trim_end_matches('0'))?;
    }
    f.write_str(name)
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Span, String> {
        let nanos = nanos(text.trim()).map_err(|misread| misread.of::<Span>(text))?;
        Ok(Span(Duration::from_nanos(nanos.unsigned_abs())))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX), f)
    }
}

impl Quantity for Span {
    const PATTERN: &'static str = r"[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)";
    const EXPECTED: &'static str = "a duration with its unit, such as \"30s\", \"1.5ms\" or \"2m\"";
    fn between(low: Span, high: Span, fraction: f64) -> Span {
        Span(low.0 + (high.0.saturating_sub(low.0)).mul_f64(fraction))
    }
}

impl FromStr for Step {
    type Err = String;
    fn from_str(text: &str) -> Result<Step, String> {
        let trimmed = text.trim();
        let (sign, rest) = match trimmed.as_bytes().first() {
            Some(b'-') => (-1, &trimmed[1..]),
            Some(b'+') => (1, &trimmed[1..]),
            _ => (1, trimmed),
        };
        nanos(rest).map(|nanos| Step(sign * nanos)).map_err(|misread| misread.of::<Step>(text))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 < 0 { "-" } else { "+" })?;
        write_nanos(self.0.unsigned_abs(), f)
    }
}

impl Quantity for Step {
    const PATTERN: &'static str = r"[+-]?[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)";
    const EXPECTED: &'static str = "a step of a clock, such as \"+31s\" or \"-20s\"";
    fn between(low: Step, high: Step, fraction: f64) -> Step {
        // The longest range is wider than the type of its ends.
        let (low, high) = (i128::from(low.0), i128::from(high.0));
        let drawn = (low + ((high - low) as f64 * fraction) as i128).clamp(low, high);
        Step(i64::try_from(drawn).expect("it lies between two values of the type"))
    }
}

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Rate, String> {
        let trimmed = text.trim();
        let (number, unit) = match (trimmed.strip_suffix("ppm"), trimmed.strip_suffix('%')) {
            (Some(number), _) => (number, 1e-6),
            (_, Some(number)) => (number, 1e-2),
            _ => return Err(expected::<Rate>(text)),
        };
        let rate = number.trim().parse::<f64>().ok().map(|number| number * unit);
        // A clock that runs backwards or stops is the matter of a step or a freeze.
        rate.filter(|rate| rate.is_finite() && *rate > -1.0 && *rate <= 100.0)
            .map(Rate)
            .ok_or_else(|| expected::<Rate>(text))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+}%", (self.0 * 1e8).round() / 1e6)
    }
}

impl Quantity for Rate {
    const PATTERN: &'static str = r"[+-]?[0-9]+(\.[0-9]+)?(%|ppm)";
    const EXPECTED: &'static str = "a rate above -100%, such as \"+2%\" or \"-300ppm\"";
    fn between(low: Rate, high: Rate, fraction: f64) -> Rate {
        Rate(low.0 + (high.0 - low.0) * fraction)
    }
}

fn expected<Q: Quantity>(found: &str) -> String {
    format!("expected {}, found {found:?}", Q::EXPECTED)
}

/// A quantity that is fixed, or that the seed draws from a range: `"3ms"` or `"3ms..20ms"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Draw<Q> {
    /// Always this quantity.
    Fixed(Q),
    /// A quantity from the first up to the second.
    Range(Q, Q),
}

impl<Q: Quantity> Draw<Q> {
    /// Returns the quantity at `fraction` of the range, or the fixed one.
    pub fn at(self, fraction: f64) -> Q {
        match self {
            Draw::Fixed(quantity) => quantity,
            Draw::Range(low, high) => Q::between(low, high, fraction),
        }
    }

    /// Replaces the range by the quantity at `fraction` of it.
    pub fn draw(&mut self, fraction: f64) {
        *self = Draw::Fixed(self.at(fraction));
    }

    /// Returns the drawn quantity; of a range that was not drawn from, the least.
    pub fn drawn(self) -> Q {
        self.at(0.0)
    }
}

impl<Q: Default> Default for Draw<Q> {
    fn default() -> Draw<Q> {
        Draw::Fixed(Q::default())
    }
}

impl<Q: Quantity> FromStr for Draw<Q> {
    type Err = String;
    fn from_str(text: &str) -> Result<Draw<Q>, String> {
        let Some((low, high)) = text.split_once("..") else { return text.parse().map(Draw::Fixed) };
        let (low, high) = (low.parse::<Q>()?, high.parse::<Q>()?);
        if low > high {
            return Err(format!("the range {text:?} ends before it begins"));
        }
        Ok(Draw::Range(low, high))
    }
}

impl<Q: Quantity> fmt::Display for Draw<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Draw::Fixed(quantity) => quantity.fmt(f),
            Draw::Range(low, high) => write!(f, "{low}..{high}"),
        }
    }
}

/// The sizes from zero up to a limit, as `"..10s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpTo(pub Span);

impl FromStr for UpTo {
    type Err = String;
    fn from_str(text: &str) -> Result<UpTo, String> {
        let expected = || format!("expected a limit such as \"..10s\", found {text:?}");
        let limit: Span = text.trim().strip_prefix("..").ok_or_else(expected)?.parse()?;
        if limit.0.is_zero() {
            return Err(format!("{text:?} leaves no size: {}", expected()));
        }
        Ok(UpTo(limit))
    }
}

impl fmt::Display for UpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "..{}", self.0)
    }
}

/// Implements serde and the schema for a type that is written as text.
macro_rules! as_text {
    ($($name:ty, $schema:literal, $pattern:expr;)*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    )* };
}

as_text! {
    Span, "Span", format!("^{}$", Span::PATTERN);
    Step, "Step", format!("^{}$", Step::PATTERN);
    Rate, "Rate", format!("^{}$", Rate::PATTERN);
    UpTo, "UpTo", format!(r"^\.\.{}$", Span::PATTERN);
    Draw<Span>, "DrawnSpan", format!(r"^{0}(\.\.{0})?$", Span::PATTERN);
    Draw<Step>, "DrawnStep", format!(r"^{0}(\.\.{0})?$", Step::PATTERN);
    Draw<Rate>, "DrawnRate", format!(r"^{0}(\.\.{0})?$", Rate::PATTERN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly_and_printed_as_people_write_them() {
        for (text, nanos, printed) in [
            ("30s", 30_000_000_000, "30s"),
            ("90s", 90_000_000_000, "90s"),
            ("2m", 120_000_000_000, "2m"),
            ("1.5ms", 1_500_000, "1.5ms"),
            ("0.3s", 300_000_000, "300ms"),
            ("0ms", 0, "0ms"),
            ("10001ms", 10_001_000_000, "10.001s"),
            ("250us", 250_000, "250us"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.as_nanos(), span.to_string()), (nanos, printed.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_an_example() {
        for text in ["", "30", "s", "3 s", "-3s", "1.s", "1e3s", "1.2.3s", "0.00000000001s"] {
            assert!(text.parse::<Span>().unwrap_err().contains("such as \"30s\""), "{text}");
        }
        for text in ["9999999h", "99999999999999999999s", "2562048h", "9223372036854775808ns"] {
            let said = text.parse::<Span>().unwrap_err();
            assert!(said.contains("is too long: at most 2562047h can be"), "{text}: {said}");
        }
        assert_eq!("2562047h".parse::<Span>().unwrap().to_string(), "2562047h");
        for text in ["2", "-100%", "x%", "inf%"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        assert!("9s..3s".parse::<Draw<Span>>().unwrap_err().contains("ends before it begins"));
    }

    #[test]
    fn a_limit_is_written_after_two_points() {
        let limit: UpTo = "..10s".parse().unwrap();
        assert_eq!((limit, limit.to_string().as_str()), (UpTo(Span::secs(10)), "..10s"));
        for (text, said) in [
            ("10s", "such as \"..10s\""),
            ("..0s", "leaves no size"),
            ("..", "with its unit"),
            ("1s..2s", "such as"),
        ] {
            assert!(text.parse::<UpTo>().unwrap_err().contains(said), "{text}");
        }
    }

    #[test]
    fn the_widest_range_of_steps_is_drawn_from() {
        let draw: Draw<Step> = "-2562047h..+2562047h".parse().unwrap();
        let end = Span::from_str("2562047h").unwrap().0.as_nanos() as i64;
        assert_eq!([0.0, 0.5, 1.0].map(|fraction| draw.at(fraction).0), [-end, 0, end]);
    }

    #[test]
    fn a_draw_covers_its_range_and_no_more() {
        let draw: Draw<Step> = "-1s..+3s".parse().unwrap();
        assert_eq!([0.0, 0.25, 1.0].map(|fraction| draw.at(fraction).0), [-1_000_000_000, 0, 3_000_000_000]);
        assert_eq!(draw.to_string(), "-1s..+3s");
    }
}
