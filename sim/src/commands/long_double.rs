//! The arithmetic of INCRBYFLOAT and HINCRBYFLOAT: x87 extended precision, in which `redis-server`
//! computes on x86-64. Its 64 bits of mantissa make 10.5 plus 0.1 equal 10.6 in the reply.

use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};

/// Maximum number of decimal digits after the point of a result.
const DECIMALS: u32 = 17;
/// Finite values are below 2 to this power.
const EXPONENT_MAX: i64 = 16_384;
/// Values up to 2 to this power are read as zero.
const EXPONENT_MIN: i64 = -16_446;
/// Decimal exponents beyond this overflow, or underflow to zero, before any arithmetic.
const DECIMAL_EXPONENT_MAX: i64 = 5_000;
/// Maximum length of the text of a number, as in Redis.
const TEXT_LEN_MAX: usize = 5 * 1024 - 1;

/// A number of the form ± mantissa · 2^exponent, or an infinity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LongDouble {
    negative: bool,
    /// 64 significant bits, or 0.
    mantissa: u64,
    exponent: i64,
    infinite: bool,
}

impl LongDouble {
    pub(super) const ZERO: LongDouble =
        LongDouble { negative: false, mantissa: 0, exponent: 0, infinite: false };

    /// Parses a decimal or hexadecimal number, or an infinity. `None` for other text, and for a
    /// number too large or too small.
    pub(super) fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble { negative, infinite: true, ..LongDouble::ZERO });
        }
        let text = std::str::from_utf8(text).ok()?;
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let (radix, text) = hexadecimal.map_or((10, text), |text| (16, text));
        let (number, exponent) = match text.split_once(if radix == 16 { ['p', 'P'] } else { ['e', 'E'] }) {
            Some((number, exponent)) => (number, decimal_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        let value = BigUint::parse_bytes(digits.as_bytes(), radix)?;
        if value == BigUint::ZERO {
            return Some(LongDouble { negative, ..LongDouble::ZERO });
        }
        let behind_point = i64::try_from(fraction.len()).ok()?;
        if radix == 16 {
            let exponent = exponent.saturating_sub(4 * behind_point);
            return LongDouble::round(negative, value, exponent, false).in_range();
        }
        let exponent = exponent.saturating_sub(behind_point);
        let magnitude = exponent.saturating_add(i64::try_from(digits.trim_start_matches('0').len()).ok()?);
        if magnitude.abs() > DECIMAL_EXPONENT_MAX {
            return None;
        }
        let power = BigUint::from(10u8).pow(u32::try_from(exponent.unsigned_abs()).ok()?);
        let rounded = if exponent >= 0 {
            LongDouble::round(negative, value * power, 0, false)
        } else {
            // The quotient gets at least 66 bits, so that the remainder only decides the rounding.
            let shift = (power.bits() + 66).saturating_sub(value.bits());
            let numerator = value << shift;
            let quotient = &numerator / &power;
            let inexact = &quotient * &power != numerator;
            LongDouble::round(negative, quotient, -i64::try_from(shift).ok()?, inexact)
        };
        rounded.in_range()
    }

    /// Returns the number. `None` if it is too large, or so small that zero is nearer.
    fn in_range(self) -> Option<LongDouble> {
        let top = self.exponent.saturating_add(i64::from(self.mantissa.ilog2()));
        let is_zero = top < EXPONENT_MIN || top == EXPONENT_MIN && self.mantissa.is_power_of_two();
        (!self.infinite && top < EXPONENT_MAX && !is_zero).then_some(self)
    }

    /// Rounds `value` · 2^`exponent` to 64 bits, half to even. `more` means that a smaller rest was
    /// cut off before.
    fn round(negative: bool, value: BigUint, exponent: i64, more: bool) -> LongDouble {
        let bits = value.bits();
        if bits <= 64 {
            let mantissa = value.iter_u64_digits().next().unwrap_or(0);
            return LongDouble { negative, mantissa, exponent, infinite: false };
        }
        let cut = bits - 64;
        let mut mantissa = (&value >> cut).iter_u64_digits().next().unwrap_or(0);
        let mut exponent = exponent.saturating_add(i64::try_from(cut).unwrap_or(i64::MAX));
        let half = value.bit(cut - 1);
        let beyond = more || value.trailing_zeros().is_some_and(|zeros| zeros < cut - 1);
        if half && (beyond || mantissa & 1 == 1) {
            mantissa = match mantissa.checked_add(1) {
                Some(mantissa) => mantissa,
                None => {
                    exponent = exponent.saturating_add(1);
                    1 << 63
                }
            };
        }
        LongDouble { negative, mantissa, exponent, infinite: exponent > EXPONENT_MAX - 64 }
    }

    pub(super) fn is_finite(&self) -> bool {
        !self.infinite
    }

    /// Returns the sum, rounded to 64 bits; `None` if it is not finite.
    pub(super) fn add(&self, other: &LongDouble) -> Option<LongDouble> {
        if self.infinite || other.infinite {
            return None;
        }
        let exponent = match (self.mantissa, other.mantissa) {
            (0, _) => other.exponent,
            (_, 0) => self.exponent,
            _ => self.exponent.min(other.exponent),
        };
        let aligned = |term: &LongDouble| {
            let sign = if term.negative { Sign::Minus } else { Sign::Plus };
            let shift = if term.mantissa == 0 { 0 } else { term.exponent - exponent };
            BigInt::from_biguint(sign, BigUint::from(term.mantissa) << shift)
        };
        let (sign, sum) = (aligned(self) + aligned(other)).into_parts();
        let sum = LongDouble::round(sign == Sign::Minus, sum, exponent, false);
        sum.is_finite().then_some(sum)
    }
}

/// Parses the digits of an exponent. Extreme ones saturate.
fn decimal_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i64>().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some(if negative { -value } else { value })
}

/// Prints decimal digits, at most seventeen after the point, without trailing zeros. An infinity is
/// never printed.
impl fmt::Display for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = BigUint::from(self.mantissa) * BigUint::from(10u8).pow(DECIMALS);
        let scaled = if self.exponent >= 0 {
            scaled << self.exponent
        } else {
            let cut = self.exponent.unsigned_abs();
            let mut whole = &scaled >> cut;
            let beyond = scaled.trailing_zeros().is_some_and(|zeros| zeros < cut - 1);
            if scaled.bit(cut - 1) && (beyond || whole.bit(0)) {
                whole += 1u8;
            }
            whole
        };
        let decimals = DECIMALS as usize;
        let digits = format!("{:0>width$}", scaled.to_string(), width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let fraction = fraction.trim_end_matches('0');
        let sign = if self.negative && (whole != "0" || !fraction.is_empty()) { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::LongDouble;

    /// Every sum is the reply of `redis-server` 7.0 on x86-64 to SET and INCRBYFLOAT.
    #[test]
    fn sums_are_those_of_extended_precision() {
        for (value, increment, expected) in [
            ("10.5", "0.1", Some("10.6")),
            ("123456789.1", "0.1", Some("123456789.19999999999708962")),
            ("3.0e3", "200", Some("3200")),
            ("0", "-0", Some("0")),
            ("1", "-1", Some("0")),
            ("-0.5", "0.25", Some("-0.25")),
            ("0.1", "0.2", Some("0.3")),
            ("1e20", "1", Some("100000000000000000000")),
            ("18446744073709551615", "1", Some("18446744073709551616")),
            ("5e-324", "0", Some("0")),
            (".5", "5.", Some("5.5")),
            ("0x10", "-0X.8p1", Some("15")),
            ("0x1p-16445", "0x0p99999999999999999999", Some("0")),
            ("1", "inf", None),
        ] {
            let read = |text: &str| LongDouble::parse(text.as_bytes()).expect(text);
            let sum = read(value).add(&read(increment)).map(|sum| sum.to_string());
            assert_eq!(sum.as_deref(), expected, "{value} + {increment}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_whatever_its_size() {
        for text in [
            "",
            " 1",
            "1 ",
            "abc",
            "1e",
            "e1",
            ".",
            "nan",
            "1e99999999999999999999",
            "1e-5000",
            "--1",
            "1.2.3",
            "0x",
            "0x.p1",
            "0x1p",
            "0x1p16384",
            "0x1.ffffffffffffffffp16383",
            "0x1p99999999999999999999",
            "0x1p-16446",
            "0x1p-99999999999999999999",
            "1e-4951",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
    }
}
