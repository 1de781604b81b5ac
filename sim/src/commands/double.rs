//! Parses doubles from text, as C's `strtod` reads them and Redis's commands accept them.

use super::Error;

/// Parses a score, weight or other double from the whole text. Rejects NaN and values that overflow
/// or underflow to zero.
///
/// # Errors
/// [`Error::NOT_FLOAT`].
pub fn double(text: &[u8]) -> Result<f64, Error> {
    let value = strtod(text).ok_or(Error::NOT_FLOAT)?;
    let overflows = value.is_infinite() && !text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    let underflows = value == 0.0 && has_significant_digit(text);
    if overflows || underflows { Err(Error::NOT_FLOAT) } else { Ok(value) }
}

/// Parses a double where Redis trusts `strtod` alone: leading spaces are allowed, empty text is
/// zero, and an overflow is infinite. `None` for NaN, or if other text follows the number.
pub fn double_prefix(text: &[u8]) -> Option<f64> {
    // In C, a zero byte ends the text.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() { Some(0.0) } else { strtod(text.trim_ascii_start()) }
}

/// Parses a number to sort by, like [`double_prefix`]. `None` if `strtod` would report an overflow
/// or underflow.
pub(super) fn sortable(text: &[u8]) -> Option<f64> {
    let value = double_prefix(text)?;
    let overflows = value.is_infinite() && !text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    let underflows = value.is_subnormal() || value == 0.0 && has_significant_digit(text);
    (!overflows && !underflows).then_some(value)
}

/// Parses a number from the whole text: decimal, hexadecimal, or a name of infinity.
fn strtod(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if magnitude.starts_with(['+', '-']) {
        return None;
    }
    let hexadecimal = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X"));
    let value = match hexadecimal {
        Some(digits) => hexadecimal_double(digits)?,
        None => magnitude.parse().ok().filter(|value: &f64| !value.is_nan())?,
    };
    Some(if negative { -value } else { value })
}

/// Returns the value of hexadecimal digits with an optional point and an optional binary exponent,
/// as in `1.8p3`.
fn hexadecimal_double(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent_of(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Sixty bits are more than a double holds. Of further digits only matters if any is not zero.
    let (mut mantissa, mut scale) = (0u64, exponent);
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let in_fraction = index >= whole.len();
        if mantissa < 1 << 56 {
            mantissa = mantissa << 4 | digit;
            scale -= if in_fraction { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit > 0);
            scale += if in_fraction { 0 } else { 4 };
        }
    }
    let mut value = mantissa as f64;
    // Scale in steps, so that no intermediate power overflows.
    let mut left = scale.clamp(-3000, 3000);
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-1000, 1000);
        value *= 2f64.powi(step as i32);
        left -= step;
    }
    Some(value)
}

/// Parses the exponent of two. A large one saturates.
fn exponent_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let bound = i64::from(i32::MAX);
    let exponent = digits.parse().unwrap_or(bound).min(bound);
    Some(if text.starts_with('-') { -exponent } else { exponent })
}

/// Returns true if the text has a digit other than zero before the exponent.
pub(super) fn has_significant_digit(text: &[u8]) -> bool {
    let hexadecimal = text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'x'));
    let exponent: &[u8] = if hexadecimal { b"pP" } else { b"eE" };
    let digits = text.iter().take_while(|byte| !exponent.contains(byte));
    digits.filter(|byte| byte.is_ascii_hexdigit()).any(|&byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each row is the reply of redis-server 7.0 to `ZADD z <text> m`.
    #[test]
    fn doubles_are_read_as_strtod_reads_them() {
        for (text, expected) in [
            ("1", Some(1.0)),
            ("+1.50", Some(1.5)),
            ("-.5e1", Some(-5.0)),
            ("5.", Some(5.0)),
            ("0x10", Some(16.0)),
            ("-0x1.8p1", Some(-3.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0e5", Some(0.0)),
            ("nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1e400", None),
            ("1e-400", None),
            ("0x", None),
            ("+-1", None),
            ("1e", None),
        ] {
            assert_eq!(double(text.as_bytes()).ok(), expected, "{text:?}");
        }
        assert_eq!(double_prefix(b""), Some(0.0));
        assert_eq!(double_prefix(b" 1e400"), Some(f64::INFINITY));
        assert_eq!(double_prefix(b"1x"), None);
        for (text, expected) in [("", Some(0.0)), (" 1", Some(1.0)), ("inf", Some(f64::INFINITY))] {
            assert_eq!(sortable(text.as_bytes()), expected, "{text:?}");
        }
        for text in ["1e400", "0x1p-9999", "1e-320", "1x"] {
            assert_eq!(sortable(text.as_bytes()), None, "{text:?}");
        }
    }
}
